#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::data {

/// Says whether the elements of a stage are so short that to hand them from thread to thread takes
/// longer than to make them: a lock on either side and, more often than not, waking who waits. Goes
/// by the mean of many, less the longest, in which the machine may have been at something else; and
/// where the consumer waits longer for threads than all that they made took, by that. Not
/// thread-safe. Times are nanoseconds.
class Handoff {
 public:
  static constexpr std::int64_t kUsual = 4'000;

  /// Elements are short that take less than `time`, and long that take twice as much; in between
  /// things stay as they are.
  explicit Handoff(std::int64_t time = kUsual) : time_(time) {}

  /// A thread of the stage made an element. True if the consumer had better make them itself.
  bool made_apart(std::int64_t time) {
    add(time);
    if (count_ < kMadeApart) return false;
    bool is_short = short_so_far();
    if (const std::int64_t made = sum_ - longest_;
        !is_short && time_ > 0 && made < waited_ / 4 * 3) {
      // This machine takes longer to hand over: the next ones are to be held against that.
      time_ = made / (count_ - 1);
      is_short = true;
    }
    begin();
    return is_short;
  }
  /// The consumer waited for threads.
  void waited(std::int64_t time) { waited_ += time; }
  /// For when there are no more: true if those that threads made were short, and not too few.
  bool short_so_far() const { return count_ >= kFew && sum_ - longest_ < (count_ - 1) * time_; }

  /// Whether the consumer should take the time of the element that it makes next: of one in
  /// sixteen, more or less, as long as they are short; with equal steps those that come at equal
  /// steps too might never be seen.
  bool wants_time() {
    if (!long_ && --until_timed_ > 0) return false;
    random_ = 1664525 * random_ + 1013904223;  // Numerical Recipes, 7.1: the upper bits are good
    until_timed_ = 1 + static_cast<int>(random_ >> 27);
    return true;
  }
  /// The consumer made one of which it took the time. True if threads had better make them:
  /// returned as soon as the whole mean is sure to be long.
  bool made_here(std::int64_t time) {
    add(time);
    long_ = time > 2 * time_;
    const bool are_long = sum_ - longest_ > kMadeHere * 2 * time_;
    if (are_long || count_ == kMadeHere) begin();
    return are_long;
  }

 private:
  static constexpr std::int64_t kMadeApart = 1024, kMadeHere = 128, kFew = 64;

  void add(std::int64_t time) {
    ++count_;
    sum_ += time;
    longest_ = std::max(longest_, time);
  }
  void begin() { count_ = sum_ = longest_ = waited_ = 0; }

  std::int64_t time_;
  std::int64_t count_ = 0, sum_ = 0, longest_ = 0, waited_ = 0;
  std::uint32_t random_ = 1;
  int until_timed_ = 1;
  bool long_ = false;  // the last one
};

}  // namespace tandem::data
