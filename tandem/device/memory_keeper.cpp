#include "tandem/device/memory_keeper.h"

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

}  // namespace tandem
