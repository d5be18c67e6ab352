#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tandem::cuda {

/// A queue in one piece of memory, which grows to the longest that the queue has been: entering and
/// leaving take no memory, as they would in a deque. An entry that has left was moved from.
template <class T>
class RingQueue {
 public:
  bool empty() const { return count_ == 0; }

  void push(T&& entry) { push_slot() = std::move(entry); }

  /// A place at the end, to be filled in: what it has is left from an entry that was moved from.
  T& push_slot() {
    if (count_ == slots_.size()) grow();
    return slots_[place(count_++)];
  }

  /// Unless empty.
  T pop() {
    T entry = std::move(slots_[first_]);
    first_ = place(1);
    --count_;
    return entry;
  }

 private:
  static constexpr std::size_t kFirstSize = 16;  // sizes are powers of two

  std::size_t place(std::size_t offset) const { return (first_ + offset) & (slots_.size() - 1); }

  void grow() {
    std::vector<T> larger(slots_.empty() ? kFirstSize : 2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(slots_[place(i)]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace tandem::cuda
