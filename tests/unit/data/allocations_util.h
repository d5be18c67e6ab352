#pragma once

#include <cstdint>

namespace tandem::data {

/// Counts how many blocks the calling thread takes from the heap while this exists: by operator
/// new, and for the memory of tensors. One at a time.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::int64_t so_far() const;
  /// False under sanitizers, whose heap is their own.
  static bool possible();
};

}  // namespace tandem::data
