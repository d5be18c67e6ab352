#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/kernels/cpu/reduce_plan.h"
#include "tandem/kernels/cpu/reduce_steps.h"
#include "tandem/kernels/cpu/scratch.h"

// The driver of all reductions. How the work is split depends on the shape alone, so results have
// the same bits for any number of threads.

namespace tandem::cpu {

/// In what partial sums and products are added up: a type that loses nothing over many of them.
template <Reduction kKind, class C>
struct PartialType {
  using type = C;
};
template <Reduction kKind>
requires(kKind != Reduction::kMax && kKind != Reduction::kMin) struct PartialType<kKind, float> {
  using type = double;
};
template <Reduction kKind>
struct PartialType<kKind, std::complex<float>> {
  using type = std::complex<double>;
};

/// Reduces elements T, computing in C, into outputs O = finish(partial result).
template <Reduction kKind, class T, class C, class O, class Finish>
class Reducer {
 public:
  using Partial = typename PartialType<kKind, C>::type;

  Reducer(const ReducePlan& plan, const T* x, O* out, Finish finish)
      : plan_(plan), x_(x), out_(out), finish_(finish), steps_(reduce_steps<kKind, T, C>()) {}

  void run(IntraOpPool& pool) const {
    if (plan_.outputs * plan_.columns == 0) return;
    const std::int64_t length = plan_.count();
    const std::int64_t chunks = (plan_.columns + kColumns - 1) / kColumns;
    const std::int64_t tasks = plan_.outputs * chunks;
    const std::int64_t width = std::min(plan_.columns, kColumns);
    const std::int64_t pieces = pieces_of(length * width, tasks);
    const double cost =
        0.3 * static_cast<double>(length * width) / static_cast<double>(pieces) + 10;
    if (pieces == 1) {
      pool.parallel_for(tasks, cost, [&](std::int64_t begin, std::int64_t end) {
        Partial acc[kColumns];
        for (std::int64_t t = begin; t < end; ++t) {
          const Place place(t, chunks, plan_.columns);
          reduce(place, 0, length, acc);
          store(place, acc);
        }
      });
      return;
    }
    const std::int64_t step = (length + pieces - 1) / pieces;
    const Scratch scratch(static_cast<std::size_t>(tasks * pieces * width) * sizeof(Partial));
    Partial* const partials = scratch.as<Partial>();
    pool.parallel_for(tasks * pieces, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = std::min(length, i % pieces * step);
        reduce(Place(i / pieces, chunks, plan_.columns), first, std::min(length, first + step),
               partials + i * width);
      }
    });
    for (std::int64_t t = 0; t < tasks; ++t) {
      const Place place(t, chunks, plan_.columns);
      Partial* const acc = partials + t * pieces * width;
      for (std::int64_t p = 1; p < pieces; ++p) {
        for (std::int64_t j = 0; j < place.columns; ++j)
          acc[j] = combine<kKind>(acc[j], acc[p * width + j]);
      }
      store(place, acc);
    }
  }

 private:
  static constexpr std::int64_t kColumns =
      512;  // at once: their accumulators stay in the nearest cache
  static constexpr std::int64_t kRun = 4096;  // elements of a row that are reduced in C
  static constexpr std::int64_t kRows = 256;  // rows of a matrix that are

  // Some columns of one group of results.
  struct Place {
    Place(std::int64_t task, std::int64_t chunks, std::int64_t all_columns)
        : output(chunks == 1 ? task : task / chunks),
          first_column((chunks == 1 ? 0 : task % chunks) * kColumns),
          columns(std::min(kColumns, all_columns - first_column)) {}
    std::int64_t output, first_column, columns;
  };

  // Into how many pieces the work of one task is split: enough for many threads, none too small.
  static std::int64_t pieces_of(std::int64_t work, std::int64_t tasks) {
    constexpr std::int64_t kEnough = 64;
    constexpr std::int64_t kSmallest = 32 * 1024;
    if (tasks >= kEnough || work < 2 * kSmallest) return 1;
    return std::min((kEnough + tasks - 1) / tasks, work / kSmallest);
  }

  // Rows [begin, end) of the place, counted over all blocks, into acc.
  void reduce(const Place& place, std::int64_t begin, std::int64_t end, Partial* acc) const {
    std::fill_n(acc, place.columns, reduction_identity<kKind, Partial>());
    const T* const base = x_ + plan_.output_offset(place.output) + place.first_column;
    const std::int64_t most = plan_.columns == 1 ? kRun : kRows;
    std::int64_t block = plan_.rows == 0 ? 0 : begin / plan_.rows;
    std::int64_t row = begin - block * plan_.rows;
    if (plan_.columns == 1) {
      for (; begin < end; ++block, row = 0) {
        const T* x = base + plan_.block_offset(block);
        for (; row < plan_.rows && begin < end;) {
          const std::int64_t n = std::min({most, plan_.rows - row, end - begin});
          acc[0] = combine<kKind>(acc[0], static_cast<Partial>(steps_.row(x + row, n)));
          row += n;
          begin += n;
        }
      }
      return;
    }
    C near[kColumns];
    std::int64_t pending = 0;
    for (; begin < end; ++block, row = 0) {
      const T* x = base + plan_.block_offset(block);
      for (; row < plan_.rows && begin < end;) {
        if (pending == 0) std::fill_n(near, place.columns, reduction_identity<kKind, C>());
        const std::int64_t n = std::min({most - pending, plan_.rows - row, end - begin});
        steps_.columns(x + row * plan_.columns, n, plan_.columns, place.columns, near);
        row += n;
        begin += n;
        pending += n;
        if (pending == most) add_near(near, place.columns, acc, pending);
      }
    }
    if (pending > 0) add_near(near, place.columns, acc, pending);
  }

  static void add_near(const C* near, std::int64_t columns, Partial* acc, std::int64_t& pending) {
    for (std::int64_t j = 0; j < columns; ++j)
      acc[j] = combine<kKind>(acc[j], static_cast<Partial>(near[j]));
    pending = 0;
  }

  void store(const Place& place, const Partial* acc) const {
    O* const out = out_ + place.output * plan_.columns + place.first_column;
    for (std::int64_t j = 0; j < place.columns; ++j) out[j] = finish_(acc[j]);
  }

  const ReducePlan& plan_;
  const T* x_;
  O* out_;
  Finish finish_;
  ReduceSteps<T, C> steps_;
};

template <Reduction kKind, class T, class C, class O, class Finish>
void run_reduction(IntraOpPool& pool, const ReducePlan& plan, const T* x, O* out, Finish finish) {
  Reducer<kKind, T, C, O, Finish>(plan, x, out, finish).run(pool);
}

}  // namespace tandem::cpu
