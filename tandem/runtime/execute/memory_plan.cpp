#include "tandem/runtime/execute/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace tandem {
namespace {

std::size_t padded(std::size_t size) {
  constexpr std::size_t kAlignment = 64;
  return std::max<std::size_t>(1, (size + kAlignment - 1) / kAlignment) * kAlignment;
}

// What is free below the end of an arena; neighbours are one place.
class FreePlaces {
 public:
  // The tightest that fits, else a new one at the end, with what is free before it.
  std::size_t take(std::size_t size) {
    const auto fits = by_size_.lower_bound({size, 0});
    std::size_t offset = end_;
    if (fits != by_size_.end()) {
      offset = fits->second;
    } else if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) offset = last->first;
    }
    const auto place = by_offset_.find(offset);
    const std::size_t had = place == by_offset_.end() ? 0 : place->second;
    if (had != 0) remove(place);
    if (had > size) add(offset + size, had - size);
    end_ = std::max(end_, offset + size);
    return offset;
  }
  void free(std::size_t offset, std::size_t size) {
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        remove(before);
      }
    }
    if (after != by_offset_.end() && after->first == offset + size) {
      size += after->second;
      remove(after);
    }
    add(offset, size);
  }
  std::size_t end() const { return end_; }

 private:
  using ByOffset = std::map<std::size_t, std::size_t>;
  void add(std::size_t offset, std::size_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(ByOffset::iterator place) {
    by_size_.erase({place->second, place->first});
    by_offset_.erase(place);
  }
  ByOffset by_offset_;  // to size
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::size_t end_ = 0;
};

}  // namespace

std::size_t plan_memory_by_steps(const std::vector<std::size_t>& bytes,
                                 const std::vector<int>& first, const std::vector<int>& last,
                                 std::vector<std::size_t>& offsets) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  offsets.assign(bytes.size(), 0);
  FreePlaces places;
  using Ends = std::pair<int, std::size_t>;  // the last step, the value
  std::priority_queue<Ends, std::vector<Ends>, std::greater<>> alive;
  for (const std::size_t i : order) {
    while (!alive.empty() && alive.top().first < first[i]) {
      const std::size_t over = alive.top().second;
      places.free(offsets[over], padded(bytes[over]));
      alive.pop();
    }
    offsets[i] = places.take(padded(bytes[i]));
    alive.push({last[i], i});
  }
  return places.end();
}

std::size_t plan_memory(const std::vector<std::size_t>& bytes,
                        const std::function<bool(std::size_t, std::size_t)>& conflict,
                        std::vector<std::size_t>& offsets) {
  // Small values each get a place of their own: reuse would save next to nothing.
  constexpr std::size_t kSmall = 1024;
  offsets.assign(bytes.size(), 0);
  std::size_t small_size = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] <= kSmall) {
      offsets[i] = small_size;
      small_size += padded(bytes[i]);
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::vector<std::size_t> placed;  // by offset
  std::size_t arena = small_size;
  for (std::size_t i : order) {
    std::size_t offset = small_size;
    for (std::size_t p : placed) {
      if (!conflict(i, p)) continue;
      if (offset + padded(bytes[i]) <= offsets[p]) break;
      offset = std::max(offset, offsets[p] + padded(bytes[p]));
    }
    offsets[i] = offset;
    arena = std::max(arena, offset + padded(bytes[i]));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; }),
        i);
  }
  return arena;
}

}  // namespace tandem
