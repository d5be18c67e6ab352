#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/internal/philox.h"

namespace tandem::data {

/// The buffer of a shuffle: holds up to `limit` items and gives back a random one of them. Draws as
/// tf.data does, so that equal seeds give equal orders.
template <class Item>
class Reservoir {
 public:
  Reservoir(std::int64_t limit, Philox random)
      : limit_(static_cast<std::size_t>(limit)), random_(random) {}

  bool full() const { return count_ == limit_; }
  bool empty() const { return count_ == 0; }
  /// How many more items fit.
  std::size_t room() const { return limit_ - count_; }

  /// Call while not full.
  void put(Item item) {
    // Until it has been full once, items lie from the beginning on and the memory grows with them.
    if (items_.size() < limit_ && first_ == 0 && count_ == items_.size()) {
      items_.push_back(std::move(item));
    } else {
      items_[wrap(first_ + count_)] = std::move(item);
    }
    ++count_;
  }

  /// Call while not empty.
  void take(Item& out) {
    const std::size_t chosen = wrap(first_ + random_() % count_);
    std::swap(items_[chosen], items_[first_]);
    std::swap(out, items_[first_]);
    first_ = wrap(first_ + 1);
    --count_;
  }

  /// Items are saved in the order in which they are drawn from, from the beginning on.
  void visit_state(StateArchive& state) {
    state.stage("Reservoir");
    random_.visit_state(state);
    const auto count = static_cast<std::size_t>(state.length(count_));
    state.require(count <= limit_, "a shuffle buffer holds more than fit");
    if (state.restoring()) {
      items_.assign(count, Item());
      first_ = 0;
      count_ = count;
    }
    for (std::size_t i = 0; i < count; ++i) state.value(items_[wrap(first_ + i)]);
  }
  /// Calls `check` with every item.
  template <class Check>
  void for_each(Check check) const {
    for (std::size_t i = 0; i < count_; ++i) check(items_[wrap(first_ + i)]);
  }

 private:
  std::size_t wrap(std::size_t i) const { return i >= items_.size() ? i - items_.size() : i; }

  const std::size_t limit_;
  Philox random_;
  std::vector<Item> items_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace tandem::data
