#include "tandem/kernels/cpu/reduce/top_k_nan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tandem::cpu {
namespace {

using Row = std::vector<double>;
using Places = std::vector<std::int64_t>;

double at(const Row& row, std::int64_t i) { return row[static_cast<std::size_t>(i)]; }

// Whole packets of `lanes` elements pass over NaNs. In the rest a NaN replaces the maximum, and the
// next element the NaN.
std::int64_t greatest(const Row& row, std::int64_t lanes) {
  const auto n = static_cast<std::int64_t>(row.size());
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  const std::int64_t whole = n / lanes * lanes;
  double packets = kLeast, rest = kLeast;
  for (std::int64_t i = 0; i < whole; ++i) packets = at(row, i) > packets ? at(row, i) : packets;
  for (std::int64_t i = whole; i < n; ++i) rest = at(row, i) < rest ? rest : at(row, i);
  const double most = rest < packets ? packets : rest;
  for (std::int64_t i = 0; i < n; ++i)
    if (at(row, i) == most) return i;
  return 0;
}

// std::sort reads beyond its range where the order is not one, so a guard at either end stops it.
void sort_all(const Row& row, std::int64_t* to) {
  constexpr std::int64_t kGuard = -1;
  Places places(row.size() + 2, kGuard);
  const auto begin = places.begin() + 1, end = places.end() - 1;
  std::iota(begin, end, std::int64_t{0});
  std::sort(begin, end, [&](std::int64_t a, std::int64_t b) {
    return a != kGuard && b != kGuard && at(row, b) < at(row, a);
  });
  for (auto run = begin; run != end;) {
    auto after = run + 1;
    while (after != end && at(row, *run) == at(row, *after)) ++after;
    std::sort(run, after);
    run = after;
  }
  std::copy(begin, end, to);
}

void sort_some(const Row& row, std::int64_t k, std::int64_t* to) {
  const auto better = [&](std::int64_t a, std::int64_t b) {
    if (at(row, b) < at(row, a)) return true;
    if (at(row, b) > at(row, a)) return false;
    return a < b;
  };
  Places heap(static_cast<std::size_t>(k) + 1);
  std::iota(heap.begin(), heap.end(), std::int64_t{0});
  std::make_heap(heap.begin(), heap.end(), better);
  std::pop_heap(heap.begin(), heap.end(), better);
  heap.pop_back();
  for (std::int64_t i = k + 1; i < static_cast<std::int64_t>(row.size()); ++i) {
    if (!better(i, heap.front())) continue;
    std::pop_heap(heap.begin(), heap.end(), better);
    heap.back() = i;
    std::push_heap(heap.begin(), heap.end(), better);
  }
  std::sort_heap(heap.begin(), heap.end(), better);
  std::copy(heap.begin(), heap.end(), to);
}

}  // namespace

void top_k_with_nans(const Row& row, std::int64_t k, std::int64_t lanes, std::int64_t* to) {
  if (k == 1) {
    *to = greatest(row, lanes);
  } else if (k == static_cast<std::int64_t>(row.size())) {
    sort_all(row, to);
  } else {
    sort_some(row, k, to);
  }
}

}  // namespace tandem::cpu
