#include "tandem/kernels/cpu/linalg/matrix_product.h"

#include <algorithm>

#include "tandem/kernels/cpu/linalg/matrix_pieces.h"
#include "tandem/kernels/cpu/linalg/matrix_ways.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

// Products so small that looking up a primitive would cost more than they do.
bool run_tiny(const MatrixProduct& p) {
  if (p.dtype != DType::kFloat || p.batch != 1 || p.m > tuning::kTinyRows ||
      p.n > tuning::kTinyColumns || p.k > tuning::kTinySums ||
      p.m * p.n * p.k > tuning::kTinyMultiplications) {
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
  if (p.dtype == DType::kFloat || p.dtype == DType::kBFloat16 || p.dtype == DType::kHalf) {
    multiply_matrices_float(context, p);
  } else if (!multiply_matrices_blas(context, p) && !multiply_matrices_integer(context, p)) {
    multiply_matrices_reference(context, p);
  }
}

}  // namespace tandem::cpu
