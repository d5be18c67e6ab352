#pragma once

#include <mutex>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Caches unused memory of a device for its next use.
class TANDEM_EXPORT Reclaimable {
 public:
  virtual ~Reclaimable();
  /// Frees it. Called by any thread, when an allocation would fail otherwise.
  virtual void reclaim() = 0;
};

/// Those of one allocator. Thread-safe.
class TANDEM_EXPORT Reclaimables {
 public:
  void add(Reclaimable& keeper);
  /// Once it returns `keeper` will not be called any more.
  void remove(Reclaimable& keeper);
  void reclaim();

 private:
  std::mutex mutex_;
  std::vector<Reclaimable*> reclaimables_;
};

/// One keeper among those of an allocator, for as long as this lives; shorter than either.
class TANDEM_EXPORT ReclaimableRegistration {
 public:
  ReclaimableRegistration(Reclaimables& keepers, Reclaimable& keeper);
  ReclaimableRegistration(ReclaimableRegistration&& other) noexcept;
  ReclaimableRegistration& operator=(ReclaimableRegistration&&) = delete;
  ~ReclaimableRegistration();

 private:
  Reclaimables* reclaimables_;  // null: moved from
  Reclaimable& keeper_;
};

}  // namespace tandem
