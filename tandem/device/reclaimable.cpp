#include "tandem/device/reclaimable.h"

#include <utility>

namespace tandem {

Reclaimable::~Reclaimable() = default;

void Reclaimables::add(Reclaimable& keeper) {
  std::lock_guard lock(mutex_);
  reclaimables_.push_back(&keeper);
}

void Reclaimables::remove(Reclaimable& keeper) {
  std::lock_guard lock(mutex_);
  std::erase(reclaimables_, &keeper);
}

void Reclaimables::reclaim() {
  std::lock_guard lock(mutex_);
  for (Reclaimable* const keeper : reclaimables_) keeper->reclaim();
}

ReclaimableRegistration::ReclaimableRegistration(Reclaimables& keepers, Reclaimable& keeper)
    : reclaimables_(&keepers), keeper_(keeper) {
  keepers.add(keeper);
}

ReclaimableRegistration::ReclaimableRegistration(ReclaimableRegistration&& other) noexcept
    : reclaimables_(std::exchange(other.reclaimables_, nullptr)), keeper_(other.keeper_) {}

ReclaimableRegistration::~ReclaimableRegistration() {
  if (reclaimables_) reclaimables_->remove(keeper_);
}

}  // namespace tandem
