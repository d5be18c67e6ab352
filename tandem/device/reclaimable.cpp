#include "tandem/device/reclaimable.h"

#include <utility>

namespace tandem {

Reclaimable::~Reclaimable() = default;

void MemoryKeepers::add(Reclaimable& keeper) {
  std::lock_guard lock(mutex_);
  keepers_.push_back(&keeper);
}

void MemoryKeepers::remove(Reclaimable& keeper) {
  std::lock_guard lock(mutex_);
  std::erase(keepers_, &keeper);
}

void MemoryKeepers::reclaim() {
  std::lock_guard lock(mutex_);
  for (Reclaimable* const keeper : keepers_) keeper->reclaim();
}

KeeperRegistration::KeeperRegistration(MemoryKeepers& keepers, Reclaimable& keeper)
    : keepers_(&keepers), keeper_(keeper) {
  keepers.add(keeper);
}

KeeperRegistration::KeeperRegistration(KeeperRegistration&& other) noexcept
    : keepers_(std::exchange(other.keepers_, nullptr)), keeper_(other.keeper_) {}

KeeperRegistration::~KeeperRegistration() {
  if (keepers_) keepers_->remove(keeper_);
}

}  // namespace tandem
