#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::data {

/// Tells whether the elements of a stage are so short that to hand them from thread to thread takes
/// longer than to make them: a lock on either side and, more often than not, waking who waits. Not
/// thread-safe. Times are nanoseconds.
class HandOver {
 public:
  /// A thread of the stage made an element. True if the consumer had better make them itself, by
  /// the mean of the last few dozen.
  bool made_apart(std::int64_t time) {
    sum_ += time;
    if (++count_ < kWindow) return false;
    const bool is_short = sum_ < kWindow * kShort;
    sum_ = count_ = 0;
    return is_short;
  }

  /// Whether the consumer should take the time of the element that it makes next: of few as long
  /// as they are short.
  bool wants_time() { return surplus_ > 0 || ++count_ % kSample == 0; }
  /// The consumer made an element. True if threads had better make them: several took long. One
  /// alone, in which the machine was at something else, does not count for much.
  bool made_here(std::int64_t time) {
    surplus_ = std::max<std::int64_t>(surplus_ + std::min(time, kMostCounted) - kLong, 0);
    if (surplus_ < kPatience) return false;
    surplus_ = sum_ = count_ = 0;
    return true;
  }

 private:
  // To hand one over takes some 5 us; in between things stay as they are.
  static constexpr std::int64_t kShort = 4'000, kLong = 8'000;
  static constexpr std::int64_t kWindow = 64;
  static constexpr std::int64_t kSample = 8;
  static constexpr std::int64_t kMostCounted = 500'000, kPatience = 1'000'000;

  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;      // of a window's times
  std::int64_t surplus_ = 0;  // of the consumer's times, what kLong does not account for
};

}  // namespace tandem::data
