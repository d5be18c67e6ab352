#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/device/intra_op_pool.h"

namespace tandem::cpu {

/// to[k] = f(to[k], from[k]) for n elements that lie side by side; the ranges do not overlap. In
/// pieces of a fixed size, which compilers turn into vector instructions even where they are shy of
/// loops of unknown length.
template <class To, class From, class F>
inline void combine_rows(To* __restrict to, const From* __restrict from, std::int64_t n, F f) {
  constexpr std::int64_t kPiece = 16;
  std::int64_t k = 0;
  for (; k + kPiece <= n; k += kPiece) {
    for (std::int64_t j = 0; j < kPiece; ++j) to[k + j] = f(to[k + j], from[k + j]);
  }
  for (; k < n; ++k) to[k] = f(to[k], from[k]);
}

/// Calls `run(begin, end)` so that each of `rows` rows is in one call: a share for each thread
/// where the work, `elements` in rows of `inner`, is worth it. For work in which every share looks
/// at all indices and does what concerns its rows: their order is then the same whatever the number
/// of threads, and there are no more shares than threads.
template <class Run>
void for_each_share(IntraOpPool& pool, std::int64_t rows, std::int64_t elements, std::int64_t inner,
                    const Run& run) {
  constexpr std::int64_t kWorthwhile = 1 << 16;
  const std::int64_t shares =
      inner < 16 || elements < kWorthwhile ? 1 : std::min<std::int64_t>(pool.threads(), rows);
  if (shares <= 1) return run(std::int64_t{0}, rows);
  pool.for_each_piece(shares, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t s = first; s < last; ++s) run(rows * s / shares, rows * (s + 1) / shares);
  });
}

}  // namespace tandem::cpu
