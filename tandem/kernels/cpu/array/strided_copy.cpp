#include "tandem/kernels/cpu/array/strided_copy.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/array/transpose_block.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Where elements are not side by side they are paid for one by one.
constexpr double kScatteredCost = 0.7;
// Pieces of one row that are handed out to threads.
constexpr std::int64_t kRowPiece = 1 << 15;

// In pieces of a fixed size, which compilers turn into vector instructions.
template <class T>
void fill_row(T* to, const T& value, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr std::int64_t kPiece = 64 / static_cast<std::int64_t>(sizeof(T));
    const T one = value;
    for (; i + kPiece <= n; i += kPiece) {
      for (std::int64_t j = 0; j < kPiece; ++j) to[i + j] = one;
    }
  }
  for (; i < n; ++i) to[i] = value;
}

// Both sides side by side. Short rows are not worth a call.
template <class T>
void copy_row(T* to, const T* from, std::int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (n * static_cast<std::int64_t>(sizeof(T)) > 64) return copy_elements(to, from, n);
  }
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// rows x columns where `to` is contiguous along columns and `from` along rows.
template <class T>
void transpose_rows(T* to, std::int64_t to_row, const T* from, std::int64_t from_column,
                    std::int64_t rows, std::int64_t columns) {
  if constexpr (std::is_unsigned_v<T>) {
    transpose_block(to, to_row, from, from_column, rows, columns);
  } else {
    constexpr std::int64_t kEdge = 8;
    for (std::int64_t c0 = 0; c0 < columns; c0 += kEdge) {
      const std::int64_t c1 = std::min(columns, c0 + kEdge);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = c0; c < c1; ++c) to[r * to_row + c] = from[c * from_column + r];
      }
    }
  }
}

}  // namespace

// The last two axes are one block; the others are counted through.
template <class T>
struct StridedCopy::Runner {
  Dim outer[kMaxDims];
  int outer_rank = 0;
  Dim row{1, 0, 0};     // the slower axis of the block
  Dim column{1, 1, 1};  // the faster
  T* to;
  const T* from;

  void block(T* out, const T* in, std::int64_t rows, std::int64_t columns) const {
    if (column.to == 1 && column.from == 1) {
      for (std::int64_t r = 0; r < rows; ++r)
        copy_row(out + r * row.to, in + r * row.from, columns);
    } else if (column.to == 1 && column.from == 0) {
      for (std::int64_t r = 0; r < rows; ++r) fill_row(out + r * row.to, in[r * row.from], columns);
    } else if (column.to == 1 && row.from == 1) {
      transpose_rows(out, row.to, in, column.from, rows, columns);
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        T* o = out + r * row.to;
        const T* i = in + r * row.from;
        for (std::int64_t c = 0; c < columns; ++c) o[c * column.to] = i[c * column.from];
      }
    }
  }

  double cost() const {
    if constexpr (!std::is_trivially_copyable_v<T>) return 20.0;
    return column.to == 1 && (column.from == 1 || column.from == 0)
               ? 0.1 * static_cast<double>(sizeof(T)) + (column.size < 16 ? 0.3 : 0.0)
               : kScatteredCost;
  }

  void run(IntraOpPool& pool) const {
    std::int64_t outer_count = 1;
    for (int i = 0; i < outer_rank; ++i) outer_count *= outer[i].size;
    // Items: pieces of rows of a block, or, where a block is one row, pieces of columns.
    const bool by_rows = row.size > 1;
    const std::int64_t split = by_rows ? row.size : column.size;
    const std::int64_t elements_each = by_rows ? column.size : 1;
    std::int64_t piece =
        std::max<std::int64_t>(1, kRowPiece / std::max<std::int64_t>(1, elements_each));
    // A transposition goes by squares: pieces of fewer rows would fetch the same memory pages again
    // and again.
    if (by_rows && column.to == 1 && row.from == 1 && column.from > 1) {
      piece = std::max<std::int64_t>(piece, 512 / static_cast<std::int64_t>(sizeof(T)));
    }
    if (outer_count >= 64) piece = split;
    piece = std::min(piece, split);
    const std::int64_t pieces = (split + piece - 1) / piece;
    pool.parallel_for(outer_count * pieces, cost() * static_cast<double>(piece * elements_each),
                      [&](std::int64_t begin, std::int64_t end) {
                        std::int64_t index[kMaxDims];
                        std::int64_t rest = begin / pieces;
                        T* out = to;
                        const T* in = from;
                        for (int i = outer_rank - 1; i >= 0; --i) {
                          index[i] = rest % outer[i].size;
                          rest /= outer[i].size;
                          out += index[i] * outer[i].to;
                          in += index[i] * outer[i].from;
                        }
                        std::int64_t at = begin % pieces;
                        for (std::int64_t item = begin; item < end; ++item) {
                          const std::int64_t first = at * piece;
                          const std::int64_t n = std::min(piece, split - first);
                          if (by_rows) {
                            block(out + first * row.to, in + first * row.from, n, column.size);
                          } else {
                            block(out + first * column.to, in + first * column.from, 1, n);
                          }
                          if (++at < pieces) continue;
                          at = 0;
                          for (int i = outer_rank - 1; i >= 0; --i) {  // the next outer index
                            out += outer[i].to;
                            in += outer[i].from;
                            if (++index[i] < outer[i].size) break;
                            out -= outer[i].size * outer[i].to;
                            in -= outer[i].size * outer[i].from;
                            index[i] = 0;
                          }
                        }
                      });
  }
};

void StridedCopy::add(std::int64_t size, std::int64_t to_stride, std::int64_t from_stride) {
  count_ *= size;
  if (size == 1) return;
  if (rank_ > 0) {
    Dim& last = dims_[rank_ - 1];
    if (last.to == size * to_stride && last.from == size * from_stride) {
      last = {last.size * size, to_stride, from_stride};
      return;
    }
  }
  if (rank_ == kMaxDims) throw InternalError("too many axes in a strided copy");
  dims_[rank_++] = {size, to_stride, from_stride};
}

void StridedCopy::run(IntraOpPool& pool, DType dtype, void* to, const void* from) const {
  if (count_ == 0) return;
  with_element(dtype, [&]<class T>() {
    Runner<T> runner;
    runner.to = static_cast<T*>(to);
    runner.from = static_cast<const T*>(from);
    if (rank_ > 0) runner.column = dims_[rank_ - 1];
    int row = rank_ - 2;
    if (rank_ > 1 && runner.column.to == 1 && runner.column.from != 1 && runner.column.from != 0) {
      // A transposition: the source's innermost axis is the block's other one.
      for (int i = 0; i < rank_ - 1; ++i) {
        if (dims_[i].from == 1) row = i;
      }
    }
    for (int i = 0; i < rank_ - 1; ++i) {
      if (i == row) {
        runner.row = dims_[i];
      } else {
        runner.outer[runner.outer_rank++] = dims_[i];
      }
    }
    runner.run(pool);
  });
}

Strides::Strides(const Shape& shape) {
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    values[i] = stride;
    stride *= shape[i];
  }
}

void copy_flat(IntraOpPool& pool, DType dtype, void* to, const void* from, std::int64_t n) {
  with_element(dtype, [&]<class T>() {
    pool.parallel_for(n, move_cost(dtype), [&](std::int64_t begin, std::int64_t end) {
      copy_elements(static_cast<T*>(to) + begin, static_cast<const T*>(from) + begin, end - begin);
    });
  });
}

void fill_flat(IntraOpPool& pool, DType dtype, void* to, const void* value, std::int64_t n) {
  with_element(dtype, [&]<class T>() {
    const T one = *static_cast<const T*>(value);
    pool.parallel_for(n, move_cost(dtype), [&](std::int64_t begin, std::int64_t end) {
      fill_row(static_cast<T*>(to) + begin, one, end - begin);
    });
  });
}

void clear_flat(IntraOpPool& pool, DType dtype, void* to, std::int64_t n) {
  with_element(dtype, [&]<class T>() {
    pool.parallel_for(n, move_cost(dtype), [&](std::int64_t begin, std::int64_t end) {
      clear_elements(static_cast<T*>(to) + begin, end - begin);
    });
  });
}

}  // namespace tandem::cpu
