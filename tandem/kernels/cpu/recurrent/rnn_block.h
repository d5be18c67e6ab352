#pragma once

#include <cmath>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"

// What the kernels of recurrent blocks share: their arithmetic is in float, whatever the dtype.

namespace tandem::cpu {

/// An input as floats: itself, or a copy if it is half.
class FloatInput {
 public:
  FloatInput(KernelContext& c, int input);
  operator const float*() const { return data_; }

 private:
  Array copy_;
  const float* data_;
};

/// An output as floats, all zero at first; what is not float is converted when the object goes.
class FloatOutput {
 public:
  FloatOutput(KernelContext& c, int output, const Shape& shape);
  FloatOutput(const FloatOutput&) = delete;
  FloatOutput& operator=(const FloatOutput&) = delete;
  ~FloatOutput();
  operator float*() const { return data_; }

 private:
  KernelContext& context_;
  Array& out_;
  Array copy_;
  float* data_;
};

/// to = a b; a is [m, k] or, transposed, [k, m], and so on. Row-major without gaps.
struct FloatProduct {
  std::int64_t m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
};
void multiply(KernelContext& c, const FloatProduct& size, const float* a, const float* b,
              float* to);

/// Throws InvalidArgumentError unless input `i` has this shape.
void require_shape(const KernelContext& c, int i, const Shape& shape);
void require_input_rank(const KernelContext& c, int i, int rank);

/// [x, h] side by side: rows of `inputs` and `cells` elements.
void join_columns(const float* x, const float* h, std::int64_t rows, std::int64_t inputs,
                  std::int64_t cells, float* to);
/// The reverse.
void split_columns(const float* from, std::int64_t rows, std::int64_t inputs, std::int64_t cells,
                   float* x, float* h);

inline float sigmoid_of(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace tandem::cpu
