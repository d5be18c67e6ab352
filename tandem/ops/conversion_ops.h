#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Tensors from C++ values and from memory, under the names that users of TensorFlow, NumPy and
// libtorch look for. tandem/ops/creation_ops.h has zeros, ones, fill, range, linspace and eye.

/// A tensor as it is; a number, of `dtype` if given; anything that converts to a tensor. Throws
/// InvalidArgumentError if a tensor has another dtype (td::cast changes it) or a number does not
/// fit.
TANDEM_EXPORT Tensor convert_to_tensor(Operand value, std::optional<DType> dtype = {});
/// Vectors, arrays and spans, nested ones too: copied, and cast if a dtype is given.
template <internal::Sequence R>
Tensor convert_to_tensor(const R& values, std::optional<DType> dtype = {}) {
  Tensor made(values);
  return dtype ? cast(std::move(made), *dtype) : made;
}
/// Several tensors of one shape, stacked.
template <std::same_as<Tensor> T>
Tensor convert_to_tensor(const std::vector<T>& values, std::optional<DType> dtype = {}) {
  return convert_to_tensor(Operand(stack(values)), dtype);
}

/// The memory itself, row-major, without a copy: it must stay valid, and unchanged, until `release`
/// is called, or as long as the tensor and what is computed from it live.
template <class T>
Tensor from_blob(T* data, const Shape& shape, std::function<void()> release = {}) {
  static_assert(!std::is_const_v<T>, "from_blob takes memory that may be written to");
  return Tensor::wrap(data, dtype_of<T>, shape, std::move(release));
}
inline Tensor from_blob(void* data, const Shape& shape, DType dtype,
                        std::function<void()> release = {}) {
  return Tensor::wrap(data, dtype, shape, std::move(release));
}

/// All elements `value`: td::fill with numbers of any dtype.
TANDEM_EXPORT Tensor full(const IntList& shape, Operand value, std::optional<DType> dtype = {});
/// A tensor of the shape and dtype of x, all elements `value`.
TANDEM_EXPORT Tensor full_like(const Tensor& x, Operand value, std::optional<DType> dtype = {});
/// start, start + step, … up to and without stop: td::range. Numbers among tensors take their
/// dtype.
TANDEM_EXPORT Tensor arange(Operand stop);
TANDEM_EXPORT Tensor arange(Operand start, Operand stop, Operand step = 1);
/// Normal numbers of mean 0 and deviation 1: td::random::normal.
TANDEM_EXPORT Tensor randn(const IntList& shape, DType dtype = float32);
/// Uniform numbers in [0, 1): td::random::uniform.
TANDEM_EXPORT Tensor rand(const IntList& shape, DType dtype = float32);

}  // namespace tandem
