#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/observe/origin.h"
#include "tandem/data/sources/philox.h"

namespace tandem::data {

/// The buffer of a shuffle: holds up to `limit` items and returns a random one of them. Draws as
/// tf.data does, so that equal seeds give equal orders.
///
/// Where passes follow each other, items of the next one may already be put behind those of this
/// one: they are drawn from `turn` on.
template <class Item>
class Reservoir {
 public:
  Reservoir(std::int64_t limit, Philox random)
      : limit_(static_cast<std::size_t>(limit)), random_(random) {}

  /// With what is there of the next pass.
  bool full() const { return count_ + ahead_ == limit_; }
  /// Whether this pass has no items.
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  /// How many more items fit.
  std::size_t room() const { return limit_ - count_ - ahead_; }

  /// Call while not full, and while there is nothing of the next pass.
  void put(Item item) {
    place(std::move(item));
    ++count_;
  }
  /// Leaves in `item` nothing, or what `take`'s `out` held before (clear that first): its memory
  /// serves again.
  void put(Item&& item, Origin&& origin) {
    place(std::move(item), std::move(origin));
    ++count_;
  }
  /// Puts an item of the next pass. Call while not full.
  void put_ahead(Item item) {
    place(std::move(item));
    ++ahead_;
  }
  void put_ahead(Item&& item, Origin&& origin) {
    place(std::move(item), std::move(origin));
    ++ahead_;
  }
  /// Begins the next pass, which draws by `random`. Call while empty.
  void turn(const Philox& random) {
    count_ = std::exchange(ahead_, 0);
    random_ = random;
  }

  /// Call while not empty.
  void take(Item& out) { take_at(draw(), out); }
  /// Takes an item that was put with its origin.
  void take(Item& out, Origin& origin) {
    const std::size_t chosen = draw();
    if (!origins_.empty()) {
      set(origin, std::move(origins_[chosen]));
      set(origins_[chosen], std::move(origins_[first_]));
    } else if (origin.names) {
      origin = {};  // of an element before a state was restored
    }
    take_at(chosen, out);
  }

  /// Items are saved in the order in which they are drawn from, from the beginning on.
  void visit_state(StateArchive& state) {
    state.stage("Reservoir");
    random_.visit_state(state);
    const auto count = static_cast<std::size_t>(state.length(count_));
    state.require(count <= limit_, "a shuffle buffer holds more than fit");
    if (state.restoring()) {
      items_.assign(count, Item());
      origins_.clear();
      first_ = ahead_ = 0;
      count_ = count;
    }
    visit_items(state, first_, count);
  }
  /// Visits the next pass's items; after `visit_state`.
  void visit_ahead(StateArchive& state) {
    const auto ahead = static_cast<std::size_t>(state.length(ahead_));
    state.require(ahead <= limit_ - count_, "a shuffle buffer holds more than fit");
    if (state.restoring()) {
      items_.resize(count_ + ahead);
      ahead_ = ahead;
    }
    visit_items(state, first_ + count_, ahead);
  }
  /// Calls `check` with every item.
  template <class Check>
  void for_each(Check check) const {
    for (std::size_t i = 0; i < count_ + ahead_; ++i) check(items_[wrap(first_ + i)]);
  }

 private:
  void visit_items(StateArchive& state, std::size_t from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) state.value(items_[wrap(from + i)]);
    bool known = !origins_.empty();
    state.value(known);
    if (known || !origins_.empty()) origins_.resize(items_.size());
    for (std::size_t i = 0; known && i < count; ++i) visit(state, origins_[wrap(from + i)]);
  }

  std::size_t draw() { return wrap(first_ + random_() % count_); }
  void take_at(std::size_t chosen, Item& out) {
    std::swap(items_[chosen], items_[first_]);
    std::swap(out, items_[first_]);
    first_ = wrap(first_ + 1);
    --count_;
  }

  // Behind all others; the memory grows with them.
  void place(Item&& item) {
    const std::size_t held = count_ + ahead_;
    if (held < items_.size()) {
      std::swap(items_[wrap(first_ + held)], item);
      return;
    }
    const auto first = static_cast<std::ptrdiff_t>(first_);
    std::rotate(items_.begin(), items_.begin() + first, items_.end());
    if (!origins_.empty()) std::rotate(origins_.begin(), origins_.begin() + first, origins_.end());
    first_ = 0;
    items_.push_back(std::move(item));
  }
  void place(Item&& item, Origin&& origin) {
    place(std::move(item));
    if (!origin.names && origins_.empty()) return;
    origins_.resize(items_.size());
    set(origins_[wrap(first_ + count_ + ahead_)], std::move(origin));
  }
  // Most elements that follow each other come from one file, whose name is then not counted again.
  static void set(Origin& to, Origin&& from) {
    if (to.names == from.names) {
      to.byte = from.byte;
      to.and_more = from.and_more;
    } else {
      to = std::move(from);
    }
  }

  std::size_t wrap(std::size_t i) const { return i >= items_.size() ? i - items_.size() : i; }

  const std::size_t limit_;
  Philox random_;
  std::vector<Item> items_;
  std::vector<Origin> origins_;  // of these; empty as long as none is known
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t ahead_ = 0;  // of the next pass, which lie behind the `count_` of this one
};

}  // namespace tandem::data
