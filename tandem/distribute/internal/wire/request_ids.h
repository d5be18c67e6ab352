#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>

#include "tandem/core/thread_annotations.h"

namespace tandem::distribute {

/// A random positive number that is not 0.
std::int64_t new_request_id();
/// A random step id, as TensorFlow's: positive and below 2^56.
std::int64_t new_step_id();
/// 16 hexadecimal digits.
std::string new_handle();

/// The request ids seen last, by which a call that was sent twice is found. Thread-safe.
class SeenRequests {
 public:
  /// False if the id, unless 0, has been seen.
  bool is_new(std::int64_t id);

 private:
  static constexpr std::size_t kMaxSeen = 100'000;
  Mutex mutex_;
  std::unordered_set<std::int64_t> seen_ TANDEM_GUARDED_BY(mutex_);
  std::deque<std::int64_t> order_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
