#include "tandem/device/memory_keeper.h"

#include <utility>

namespace tandem {

MemoryKeeper::~MemoryKeeper() = default;

void MemoryKeepers::add(MemoryKeeper& keeper) {
  std::lock_guard lock(mutex_);
  keepers_.push_back(&keeper);
}

void MemoryKeepers::remove(MemoryKeeper& keeper) {
  std::lock_guard lock(mutex_);
  std::erase(keepers_, &keeper);
}

void MemoryKeepers::give_up_memory() {
  std::lock_guard lock(mutex_);
  for (MemoryKeeper* const keeper : keepers_) keeper->give_up_memory();
}

KeeperRegistration::KeeperRegistration(MemoryKeepers& keepers, MemoryKeeper& keeper)
    : keepers_(&keepers), keeper_(keeper) {
  keepers.add(keeper);
}

KeeperRegistration::KeeperRegistration(KeeperRegistration&& other) noexcept
    : keepers_(std::exchange(other.keepers_, nullptr)), keeper_(other.keeper_) {}

KeeperRegistration::~KeeperRegistration() {
  if (keepers_) keepers_->remove(keeper_);
}

}  // namespace tandem
