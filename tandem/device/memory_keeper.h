#pragma once

#include <mutex>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Keeps memory of a device that nobody uses now, for its next use.
class TANDEM_EXPORT MemoryKeeper {
 public:
  virtual ~MemoryKeeper();
  /// Frees it. Called by any thread, when an allocation would fail otherwise.
  virtual void give_up_memory() = 0;
};

/// Those of one allocator. Thread-safe.
class TANDEM_EXPORT MemoryKeepers {
 public:
  void add(MemoryKeeper& keeper);
  /// Once it returns `keeper` will not be called any more.
  void remove(MemoryKeeper& keeper);
  void give_up_memory();

 private:
  std::mutex mutex_;
  std::vector<MemoryKeeper*> keepers_;
};

/// One keeper among those of an allocator, for as long as this lives; shorter than either.
class TANDEM_EXPORT KeeperRegistration {
 public:
  KeeperRegistration(MemoryKeepers& keepers, MemoryKeeper& keeper);
  KeeperRegistration(KeeperRegistration&& other) noexcept;
  KeeperRegistration& operator=(KeeperRegistration&&) = delete;
  ~KeeperRegistration();

 private:
  MemoryKeepers* keepers_;  // null: moved from
  MemoryKeeper& keeper_;
};

}  // namespace tandem
