#include "tandem/kernels/cpu/recurrent/rnn_block.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"

namespace tandem::cpu {

FloatInput::FloatInput(KernelContext& c, int input) {
  const Array& x = c.input(input);
  if (x.dtype() == DType::kFloat) {
    data_ = x.data<float>();
    return;
  }
  copy_ = c.allocate_temp(DType::kFloat, x.shape());
  to_float(c.intra_op(), x.dtype(), x.raw_data(), copy_.data<float>(), x.num_elements());
  data_ = copy_.data<float>();
}

FloatOutput::FloatOutput(KernelContext& c, int output, const Shape& shape)
    : context_(c), out_(c.allocate_output(output, shape)) {
  if (out_.dtype() == DType::kFloat) {
    data_ = out_.data<float>();
  } else {
    copy_ = c.allocate_temp(DType::kFloat, shape);
    data_ = copy_.data<float>();
  }
  std::fill(data_, data_ + shape.num_elements(), 0.0f);
}

FloatOutput::~FloatOutput() {
  if (copy_.valid()) {
    from_float(context_.intra_op(), data_, out_.dtype(), out_.raw_data(), out_.num_elements());
  }
}

void multiply(KernelContext& c, const FloatProduct& size, const float* a, const float* b,
              float* to) {
  if (size.m == 0 || size.n == 0) return;
  MatrixProduct product;
  product.m = size.m;
  product.n = size.n;
  product.k = size.k;
  product.transpose_a = size.transpose_a;
  product.transpose_b = size.transpose_b;
  product.a = a;
  product.b = b;
  product.c = to;
  multiply_matrices(c, product);
}

void require_shape(const KernelContext& c, int i, const Shape& shape) {
  if (c.input(i).shape() == shape) return;
  throw InvalidArgumentError(cat(c.op().inputs[static_cast<std::size_t>(i)].name,
                                 " must have shape ", shape, ", but has ", c.input(i).shape()));
}

void require_input_rank(const KernelContext& c, int i, int rank) {
  if (c.input(i).rank() == rank) return;
  throw InvalidArgumentError(cat(c.op().inputs[static_cast<std::size_t>(i)].name, " must be ", rank,
                                 "D, but has shape ", c.input(i).shape()));
}

void join_columns(const float* x, const float* h, std::int64_t rows, std::int64_t inputs,
                  std::int64_t cells, float* to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    to = std::copy(x + r * inputs, x + (r + 1) * inputs, to);
    to = std::copy(h + r * cells, h + (r + 1) * cells, to);
  }
}

void split_columns(const float* from, std::int64_t rows, std::int64_t inputs, std::int64_t cells,
                   float* x, float* h) {
  for (std::int64_t r = 0; r < rows; ++r, from += inputs + cells) {
    std::copy(from, from + inputs, x + r * inputs);
    std::copy(from + inputs, from + inputs + cells, h + r * cells);
  }
}

}  // namespace tandem::cpu
