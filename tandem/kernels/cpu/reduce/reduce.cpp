#include "tandem/kernels/cpu/reduce/reduce.h"

#include <cstddef>

#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kColumns = 512;  // at once: their results stay in the nearest cache
constexpr std::int64_t kRun = 4096;     // elements of a row that are reduced to a near value
constexpr std::int64_t kRows = 256;     // rows of a matrix that are
constexpr std::int64_t kMaxBytes = 16;

// Near or partial values.
struct Values {
  alignas(64) std::byte bytes[kColumns * kMaxBytes];
};

// Some columns of one group of results.
struct Place {
  Place(std::int64_t task, std::int64_t chunks, std::int64_t all_columns)
      : output(chunks == 1 ? task : task / chunks),
        first_column((chunks == 1 ? 0 : task % chunks) * kColumns),
        columns(std::min(kColumns, all_columns - first_column)) {}
  std::int64_t output, first_column, columns;
};

// Into how many pieces the work of one task is split: enough for many threads, none too small.
std::int64_t pieces_of(std::int64_t work, std::int64_t tasks) {
  constexpr std::int64_t kEnough = 64;
  constexpr std::int64_t kSmallest = 32 * 1024;
  if (tasks >= kEnough || work < 2 * kSmallest) return 1;
  return std::min((kEnough + tasks - 1) / tasks, work / kSmallest);
}

class Reducer {
 public:
  Reducer(const ReducePlan& plan, const void* x, const ReduceLoops& loops)
      : plan_(plan), x_(static_cast<const std::byte*>(x)), loops_(loops) {}

  // How many groups of results from one on are worth being reduced together: those that lie side by
  // side and have few rows. 0: not even one.
  std::int64_t groups_at_once() const {
    const std::int64_t most = plan_.columns == 1 ? kRun : kRows;
    if (plan_.outer != 1 || plan_.rows == 0 || plan_.rows > most || plan_.columns > kColumns)
      return 0;
    if (plan_.outputs == 1) return 1;
    return std::clamp<std::int64_t>(kRun / (plan_.rows * plan_.columns), 1,
                                    kColumns / plan_.columns);
  }

  void reduce_groups(std::int64_t output, std::int64_t groups, void* acc) const {
    const std::int64_t size = plan_.rows * plan_.columns;
    const std::byte* const from = x_ + output * size * loops_.element_bytes;
    loops_.clear(acc, groups * plan_.columns);
    if (plan_.columns == 1) return loops_.rows(from, groups, size, plan_.rows, acc, 1);
    Values near;
    loops_.clear_near(near.bytes, groups * plan_.columns);
    loops_.columns(from, groups, size, plan_.rows, plan_.columns, plan_.columns, near.bytes,
                   plan_.columns);
    loops_.add_near(acc, near.bytes, groups * plan_.columns);
  }

  // Rows [begin, end) of the place, counted over all blocks, into acc.
  void reduce_rows(const Place& place, std::int64_t begin, std::int64_t end, void* acc) const {
    loops_.clear(acc, place.columns);
    const std::int64_t base = plan_.output_offset(place.output) + place.first_column;
    const bool is_row = plan_.columns == 1;
    const std::int64_t most = is_row ? kRun : kRows;
    std::int64_t block = begin == 0 ? 0 : begin / plan_.rows;
    std::int64_t row = begin - block * plan_.rows;
    const std::int64_t last = end == plan_.count() ? plan_.outer : end / plan_.rows;
    Values near;
    std::int64_t pending = 0;  // rows that are in near
    while (begin < end) {
      const std::int64_t left = std::min(most - pending, end - begin);
      const std::int64_t n = std::min(left, plan_.rows - row);
      std::int64_t blocks = 1;
      if (n == plan_.rows) {
        blocks = std::min(last - block, plan_.even_blocks(block));
        if (!is_row && blocks * n > left) blocks = left / n;
      }
      const std::byte* const from =
          x_ + (base + plan_.block_offset(block) + row * plan_.columns) * loops_.element_bytes;
      if (is_row) {
        loops_.rows(from, blocks, plan_.block_stride(), n, acc, 0);
      } else {
        if (pending == 0) loops_.clear_near(near.bytes, place.columns);
        loops_.columns(from, blocks, plan_.block_stride(), n, plan_.columns, place.columns,
                       near.bytes, 0);
        pending += blocks * n;
        if (pending == most || blocks * n == end - begin) {
          loops_.add_near(acc, near.bytes, place.columns);
          pending = 0;
        }
      }
      begin += blocks * n;
      row += n;
      if (row == plan_.rows) {
        block += blocks;
        row = 0;
      }
    }
  }

 private:
  const ReducePlan& plan_;
  const std::byte* x_;
  const ReduceLoops& loops_;
};

}  // namespace

void reduce(IntraOpPool& pool, const ReducePlan& plan, const void* x, const ReduceLoops& loops) {
  if (plan.outputs * plan.columns == 0) return;
  const Reducer reducer(plan, x, loops);
  const std::int64_t length = plan.count();
  const std::int64_t chunks = (plan.columns + kColumns - 1) / kColumns;
  const std::int64_t tasks = plan.outputs * chunks;
  const std::int64_t width = std::min(plan.columns, kColumns);
  const std::int64_t pieces = pieces_of(length * width, tasks);
  const double cost = 0.3 * static_cast<double>(length * width) / static_cast<double>(pieces) + 10;
  const auto store = [&](const Place& place, std::int64_t groups, const void* acc) {
    loops.store(acc, place.output * plan.columns + place.first_column, groups * place.columns);
  };
  if (pieces == 1) {
    const std::int64_t at_once = reducer.groups_at_once();
    pool.parallel_for(tasks, cost, [&](std::int64_t begin, std::int64_t end) {
      Values acc;
      while (begin < end) {
        const Place place(begin, chunks, plan.columns);
        const std::int64_t groups = at_once == 0 ? 1 : std::min(at_once, end - begin);
        if (at_once > 0)
          reducer.reduce_groups(place.output, groups, acc.bytes);
        else
          reducer.reduce_rows(place, 0, length, acc.bytes);
        store(place, groups, acc.bytes);
        begin += groups;
      }
    });
    return;
  }
  const std::int64_t step = (length + pieces - 1) / pieces;
  const std::int64_t bytes = width * loops.partial_bytes;
  const Scratch scratch(static_cast<std::size_t>(tasks * pieces * bytes));
  auto* const partials = scratch.as<std::byte>();
  pool.parallel_for(tasks * pieces, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = std::min(length, i % pieces * step);
      reducer.reduce_rows(Place(i / pieces, chunks, plan.columns), first,
                          std::min(length, first + step), partials + i * bytes);
    }
  });
  for (std::int64_t t = 0; t < tasks; ++t) {
    const Place place(t, chunks, plan.columns);
    std::byte* const acc = partials + t * pieces * bytes;
    for (std::int64_t p = 1; p < pieces; ++p) loops.add(acc, acc + p * bytes, place.columns);
    store(place, 1, acc);
  }
}

}  // namespace tandem::cpu
