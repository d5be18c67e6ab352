#include "tandem/kernels/cpu/array/split_rows.h"

#include <algorithm>
#include <type_traits>

#include "tandem/kernels/cpu/array/transpose_block.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBytes = 32 << 10;  // of rows that are looked at together

template <class T>
struct Splitter {
  const T* from;
  std::span<const RowPart> parts;
  std::int64_t row;  // its length
  bool single;       // all parts have one element

  static constexpr std::int64_t kSquare = 16;  // rows and columns that go well together
  static constexpr std::int64_t kTile = kBytes / static_cast<std::int64_t>(sizeof(T));

  void run(std::int64_t begin, std::int64_t end) const {
    std::int64_t together = std::max<std::int64_t>(1, kTile / row);
    if (together > kSquare) together -= together % kSquare;
    for (; begin < end; begin += together) {
      const std::int64_t rows = std::min(together, end - begin);
      if constexpr (std::is_unsigned_v<T>) {
        // Fewer columns are not worth the way through a tile.
        if (single && row >= kSquare && rows >= kSquare) {
          transposed(begin, rows);
          continue;
        }
      }
      const T* part = from + begin * row;
      for (const RowPart& p : parts) {
        copy_part(static_cast<T*>(p.data) + begin * p.length, part, rows, p.length);
        part += p.length;
      }
    }
  }

 private:
  void copy_part(T* to, const T* part, std::int64_t rows, std::int64_t length) const {
    if (length == 1) {
      for (std::int64_t r = 0; r < rows; ++r) to[r] = part[r * row];
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      copy_elements(to + r * length, part + r * row, length);
    }
  }

  void transposed(std::int64_t begin, std::int64_t rows) const {
    if constexpr (std::is_unsigned_v<T>) {
      alignas(64) T tile[kTile];
      transpose_block(tile, rows, from + begin * row, row, row, rows);
      for (std::int64_t k = 0; k < row; ++k) {
        copy_elements(static_cast<T*>(parts[static_cast<std::size_t>(k)].data) + begin,
                      tile + k * rows, rows);
      }
    }
  }
};

}  // namespace

void split_rows(IntraOpPool& pool, DType dtype, const void* from, std::int64_t rows,
                std::span<const RowPart> parts) {
  std::int64_t row = 0;
  bool single = true;
  for (const RowPart& p : parts) {
    row += p.length;
    single = single && p.length == 1;
  }
  if (row == 0) return;
  const double cost =
      move_cost(dtype) * static_cast<double>(row) + 0.5 * static_cast<double>(parts.size());
  with_element(dtype, [&]<class T>() {
    const Splitter<T> splitter{static_cast<const T*>(from), parts, row, single};
    pool.parallel_for(rows, cost,
                      [&](std::int64_t begin, std::int64_t end) { splitter.run(begin, end); });
  });
}

}  // namespace tandem::cpu
