#include "tandem/kernels/cpu/linalg/matrix_product.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/onednn/matmul.h"
#include "tandem/kernels/cpu/onednn/support.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu {
namespace {

// How a product is cut into pieces that threads take: `batch` ranges of matrices, or `rows` times
// `columns` parts of one, or `sums` parts of its sums, to be added up.
//
// What one core changes and another reads can cost more than an optimizer's whole step on it. So
// weights, b of a layer's product, are cut by their rows where that is cheap: in the product by its
// sums, in the gradient by rows, and the optimizer has every thread change the same rows.
struct Grid {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t sums = 1;
  std::int64_t pieces() const { return batch * rows * columns * sums; }
};

// Multiplications that are worth another thread: some 15 µs on one core.
constexpr double kPiece = 1e6;
// The pieces under determinism, whatever the number of threads.
constexpr double kFixedPiece = 1.6e7;
constexpr std::int64_t kMaxFixedPieces = 16;

double multiplications(const MatrixProduct& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
         static_cast<double>(p.k);
}

std::int64_t wanted_pieces(const KernelContext& context, double work) {
  if (context.deterministic()) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(work / kFixedPiece), 1,
                                    kMaxFixedPieces);
  }
  const std::int64_t threads = context.intra_op().threads();
  const auto worthwhile = static_cast<std::int64_t>(work / kPiece);
  return std::clamp<std::int64_t>(worthwhile, 1, threads);
}

Grid cut(const MatrixProduct& p, std::int64_t pieces) {
  Grid grid;
  if (p.batch >= pieces) {
    grid.batch = pieces;
    return grid;
  }
  const bool weights_are_most = !p.transpose_b && p.k >= 8 * p.m && p.k >= 128;
  const bool is_gradient =
      p.transpose_a && (p.m / 16) * std::max<std::int64_t>(p.n / 64, 1) >= pieces;
  if (p.dtype == DType::kFloat && p.batch == 1 && weights_are_most && !is_gradient) {
    grid.sums = std::min(pieces, p.k / 64);
    return grid;
  }
  grid.batch = p.batch;
  std::int64_t parts = (pieces + p.batch - 1) / p.batch;
  // Cutting columns has every thread read all of a, cutting rows all of b, which has to be
  // rearranged besides: so columns are cut first while they stay long.
  const bool tall = p.m >= 4 * p.n;
  grid.columns = tall ? 1 : std::clamp<std::int64_t>(p.n / 64, 1, parts);
  grid.rows = std::clamp<std::int64_t>(p.m / 16, 1, (parts + grid.columns - 1) / grid.columns);
  return grid;
}

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// Part i of n of [0, count); inner borders are multiples of `unit`.
Range part(std::int64_t i, std::int64_t n, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * i / n * unit), std::min(count, units * (i + 1) / n * unit)};
}

const std::byte* at(const void* base, std::int64_t element, std::size_t size) {
  return static_cast<const std::byte*>(base) + element * static_cast<std::int64_t>(size);
}
std::byte* at(void* base, std::int64_t element, std::size_t size) {
  return static_cast<std::byte*>(base) + element * static_cast<std::int64_t>(size);
}

onednn::MatMul describe(const MatrixProduct& p) {
  onednn::MatMul w;
  w.dtype = p.dtype;
  w.m = p.m;
  w.n = p.n;
  w.k = p.k;
  w.transpose_a = p.transpose_a;
  w.transpose_b = p.transpose_b;
  w.a_stride = p.transpose_a ? p.m : p.k;
  w.b_stride = p.transpose_b ? p.k : p.n;
  w.c_stride = p.n;
  w.a_step = p.a_once ? 0 : p.m * p.k;
  w.b_step = p.b_once ? 0 : p.k * p.n;
  w.c_step = p.m * p.n;
  return w;
}

// Adds up parts of the sums; false if oneDNN cannot.
bool multiply_in_sums(KernelContext& context, const MatrixProduct& p, std::int64_t parts) {
  const std::int64_t count = p.m * p.n;
  const Array others = context.allocate_temp(DType::kFloat, Shape{(parts - 1) * count});
  float* const c = static_cast<float*>(p.c);
  std::atomic<bool> possible{true};
  context.intra_op().for_each_piece(parts, [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) {
      const Range sum = part(i, parts, p.k, 16);
      onednn::MatMul w = describe(p);
      w.k = sum.size();
      const void* const a = at(p.a, sum.begin * (p.transpose_a ? p.m : 1), sizeof(float));
      const void* const b = at(p.b, sum.begin * p.n, sizeof(float));
      float* const to = i == 0 ? c : others.data<float>() + (i - 1) * count;
      if (!onednn::matmul(w, a, b, to)) possible.store(false, std::memory_order_relaxed);
    }
  });
  if (!possible.load(std::memory_order_relaxed)) return false;
  const float* const from = others.data<float>();
  context.intra_op().parallel_for(count, 0.1 * static_cast<double>(parts),
                                  [&](std::int64_t begin, std::int64_t end) {
                                    for (std::int64_t i = 0; i < parts - 1; ++i) {
                                      const float* const other = from + i * count;
                                      for (std::int64_t j = begin; j < end; ++j) c[j] += other[j];
                                    }
                                  });
  return true;
}

// One piece; false if oneDNN cannot.
bool run_piece(const MatrixProduct& p, Range batch, Range rows, Range columns) {
  const std::size_t size = dtype_size(p.dtype);
  onednn::MatMul w = describe(p);
  w.m = rows.size();
  w.n = columns.size();
  const auto run = [&](std::int64_t first, std::int64_t count) {
    w.batch = count;
    const std::int64_t a = p.a_matrix(first) * p.m * p.k + rows.begin * (p.transpose_a ? 1 : p.k);
    const std::int64_t b =
        p.b_matrix(first) * p.k * p.n + columns.begin * (p.transpose_b ? p.k : 1);
    const std::int64_t c = first * p.m * p.n + rows.begin * p.n + columns.begin;
    return onednn::matmul(w, at(p.a, a, size), at(p.b, b, size), at(p.c, c, size));
  };
  if (rows.size() == 0 || columns.size() == 0 || batch.size() == 0) return true;
  if (p.a_index.empty() && p.b_index.empty()) return run(batch.begin, batch.size());
  for (std::int64_t i = batch.begin; i < batch.end; ++i) {
    if (!run(i, 1)) return false;
  }
  return true;
}

// Products so small that looking up a primitive would cost more than they do.
bool run_tiny(const MatrixProduct& p) {
  if (p.dtype != DType::kFloat || p.batch != 1 || p.m > 16 || p.n > 16 || p.k > 64 ||
      p.m * p.n * p.k > 128) {
    return false;
  }
  const float* a = static_cast<const float*>(p.a);
  const float* b = static_cast<const float*>(p.b);
  float* c = static_cast<float*>(p.c);
  const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_column = p.transpose_a ? p.m : 1;
  const std::int64_t b_row = p.transpose_b ? 1 : p.n, b_column = p.transpose_b ? p.k : 1;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += a[i * a_row + l * a_column] * b[l * b_row + j * b_column];
      c[i * p.n + j] = sum;
    }
  }
  return true;
}

void multiply_directly(KernelContext& context, const MatrixProduct& p) {
  const double work = multiplications(p);
  const Grid grid = cut(p, wanted_pieces(context, work));
  if (grid.sums > 1) {
    if (!multiply_in_sums(context, p, grid.sums)) multiply_matrices_reference(context, p);
    return;
  }
  std::atomic<bool> possible{true};
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Range columns = part(i % grid.columns, grid.columns, p.n, 16);
      const Range rows = part(i / grid.columns % grid.rows, grid.rows, p.m, 4);
      const Range batch = part(i / grid.columns / grid.rows, grid.batch, p.batch, 1);
      if (!run_piece(p, batch, rows, columns)) possible.store(false, std::memory_order_relaxed);
    }
  };
  if (grid.pieces() == 1) {
    run(0, 1);
  } else {
    context.intra_op().for_each_piece(grid.pieces(), run);
  }
  if (!possible.load(std::memory_order_relaxed)) multiply_matrices_reference(context, p);
}

std::int64_t matrices(bool once, std::span<const std::int64_t> index, std::int64_t batch) {
  if (once) return 1;
  return index.empty() ? batch : *std::max_element(index.begin(), index.end()) + 1;
}

// Small matrices of half or bfloat16 a few at a time: their floats stay in a core's cache.
void multiply_batch_in_float(KernelContext& context, const MatrixProduct& p, std::int64_t step) {
  const std::int64_t a_size = p.m * p.k, b_size = p.k * p.n, c_size = p.m * p.n;
  const std::int64_t blocks = (p.batch + step - 1) / step;
  const double cost = static_cast<double>(a_size + b_size + c_size) * 0.5 +
                      multiplications(p) / static_cast<double>(p.batch) * 0.05;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t floats = step * (a_size + b_size + c_size);
    const Scratch scratch(static_cast<std::size_t>(floats) * sizeof(float));
    float* const a = scratch.as<float>();
    float* const b = a + step * a_size;
    float* const c = b + step * b_size;
    for (std::int64_t at = begin * step; at < std::min(end * step, p.batch); at += step) {
      MatrixProduct few = p;
      few.dtype = DType::kFloat;
      few.batch = std::min(step, p.batch - at);
      few.a_once = p.a_once || few.batch == 1;
      few.b_once = p.b_once || few.batch == 1;
      few.a = a;
      few.b = b;
      few.c = c;
      const std::size_t size = dtype_size(p.dtype);
      IntraOpPool& pool = context.intra_op();
      to_float(pool, p.dtype, tandem::cpu::at(p.a, p.a_once ? 0 : at * a_size, size), a,
               (p.a_once ? 1 : few.batch) * a_size);
      to_float(pool, p.dtype, tandem::cpu::at(p.b, p.b_once ? 0 : at * b_size, size), b,
               (p.b_once ? 1 : few.batch) * b_size);
      multiply_directly(context, few);
      from_float(pool, c, p.dtype, tandem::cpu::at(p.c, at * c_size, size), few.batch * c_size);
    }
  };
  context.intra_op().parallel_for(blocks, cost * static_cast<double>(step), run);
}

// half, and bfloat16 where the processor lacks it: through float.
void multiply_in_float(KernelContext& context, const MatrixProduct& p) {
  constexpr std::int64_t kBlock = 1 << 16;
  const std::int64_t floats = p.m * p.k + p.k * p.n + p.m * p.n;
  if (p.batch > 1 && p.a_index.empty() && p.b_index.empty() && floats <= kBlock) {
    return multiply_batch_in_float(context, p, std::min(p.batch, kBlock / floats));
  }
  const std::int64_t a_count = matrices(p.a_once, p.a_index, p.batch) * p.m * p.k;
  const std::int64_t b_count = matrices(p.b_once, p.b_index, p.batch) * p.k * p.n;
  const std::int64_t c_count = p.batch * p.m * p.n;
  const Array a = context.allocate_temp(DType::kFloat, Shape{a_count});
  const Array b = context.allocate_temp(DType::kFloat, Shape{b_count});
  const Array c = context.allocate_temp(DType::kFloat, Shape{c_count});
  to_float(context.intra_op(), p.dtype, p.a, a.data<float>(), a_count);
  to_float(context.intra_op(), p.dtype, p.b, b.data<float>(), b_count);
  MatrixProduct in_float = p;
  in_float.dtype = DType::kFloat;
  in_float.a = a.raw_data();
  in_float.b = b.raw_data();
  in_float.c = c.raw_data();
  multiply_directly(context, in_float);
  from_float(context.intra_op(), c.data<float>(), p.dtype, p.c, c_count);
}

}  // namespace

std::vector<std::int64_t> matrix_numbers(const Shape& from, const Shape& to) {
  std::vector<std::int64_t> numbers{0};
  numbers.reserve(static_cast<std::size_t>(to.num_elements()));
  std::int64_t stride = 1;
  // From the last axis to the first, each axis repeats what there is, moved by the axis' stride.
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    const int own = axis - (to.rank() - from.rank());
    const std::int64_t size = own >= 0 ? from[own] : 1;
    const std::size_t inner = numbers.size();
    for (std::int64_t i = 1; i < to[axis]; ++i) {
      for (std::size_t j = 0; j < inner; ++j) {
        numbers.push_back(numbers[j] + (size == 1 ? 0 : i * stride));
      }
    }
    stride *= size;
  }
  return numbers;
}

void multiply_matrices(KernelContext& context, const MatrixProduct& product) {
  if (product.batch == 0 || product.m == 0 || product.n == 0) return;
  if (run_tiny(product)) return;
  MatrixProduct p = product;
  if (p.k == 0) return multiply_matrices_reference(context, p);
  if (p.b_once && p.batch > 1 && !p.transpose_a && p.a_index.empty() && !p.a_once) {
    // One matrix for all: the batch is a longer list of rows.
    p.m *= p.batch;
    p.batch = 1;
  }
  if (p.batch == 1) p.a_once = p.b_once = true;
  if (p.dtype == DType::kFloat || (p.dtype == DType::kBFloat16 && onednn::has_native_bfloat16())) {
    multiply_directly(context, p);
  } else if (p.dtype == DType::kHalf || p.dtype == DType::kBFloat16) {
    multiply_in_float(context, p);
  } else if (!multiply_matrices_blas(context, p) && !multiply_matrices_integer(context, p)) {
    multiply_matrices_reference(context, p);
  }
}

}  // namespace tandem::cpu
