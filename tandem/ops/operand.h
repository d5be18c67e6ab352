#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Operand;

namespace internal {
/// Classes other than Tensor that convert to one by themselves: variables, arrays, strings.
template <class V>
concept ConvertsToTensor =
    std::is_class_v<V> && !std::same_as<V, Tensor> && !std::derived_from<V, Operand> &&
    std::is_convertible_v<const V&, Tensor>;
template <class V>
Tensor to_tensor(const V& value) {
  return value;
}
template <class S>
concept Integer = std::integral<S> && !std::same_as<S, bool>;
}  // namespace internal

/// What functions and operators of two or more values take: a tensor, or a C++ number that has no
/// dtype of its own yet.
///
/// Between tensors there is no implicit promotion. A C++ number takes the dtype of the tensors that
/// it meets, if its value fits: `x + 1`, `2.5 * x` and `td::maximum(x, 0)` work for any dtype of x
/// that has the value. A number with a fraction, or too large, does not fit an integer dtype; an
/// integer must be exact in a floating dtype, and a fraction is rounded to it but may not overflow
/// to infinity. Otherwise InvalidArgumentError says what did not fit. Where no tensor is involved,
/// int is int32, longer integers are int64, float and double are float32, bool is bool.
///
/// Implicit on purpose; made at the call and used up by it.
class TANDEM_EXPORT Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(tensor) {}
  Operand(Tensor&& tensor) noexcept : tensor_(std::move(tensor)) {}
  template <internal::ConvertsToTensor V>
  Operand(const V& value) : tensor_(internal::to_tensor(value)) {}
  Operand(const char* text) : tensor_(text) {}

  Operand(bool value) noexcept : kind_(Kind::kBool), integer_(value) {}
  template <internal::Integer S>
  Operand(S value)
      : kind_(sizeof(S) < 4 || (sizeof(S) == 4 && std::is_signed_v<S>) ? Kind::kInt32
                                                                       : Kind::kInt64),
        integer_(static_cast<std::int64_t>(value)) {
    if constexpr (std::is_unsigned_v<S> && sizeof(S) == 8) check_unsigned(value);
  }
  template <std::floating_point S>
  Operand(S value) noexcept : kind_(Kind::kFloating), floating_(static_cast<double>(value)) {}

  /// A row of numbers is a tensor, as in Tensor{1, 2, 3}.
  template <class T>
  requires std::is_constructible_v<Tensor, std::initializer_list<T>> Operand(
      std::initializer_list<T> values)
      : tensor_(values) {}

  /// Came from a C++ number, so it has no dtype of its own yet.
  bool is_number() const noexcept { return kind_ != Kind::kTensor; }

  // ---- For op functions. ----

  /// The tensor; for a number one of the dtype that it has alone.
  Tensor take() && { return kind_ == Kind::kTensor ? std::move(tensor_) : make(own_dtype()); }
  /// The tensor as it is (whatever its dtype); for a number a scalar of `dtype`. Throws
  /// InvalidArgumentError if the number does not fit.
  Tensor take_as(DType dtype) && {
    return kind_ == Kind::kTensor ? std::move(tensor_) : make(dtype);
  }
  /// The tensor's dtype, or that which a number has alone.
  DType dtype() const { return kind_ == Kind::kTensor ? tensor_.dtype() : own_dtype(); }

 private:
  enum class Kind : std::uint8_t { kTensor, kBool, kInt32, kInt64, kFloating };
  DType own_dtype() const noexcept;
  Tensor make(DType dtype) const;
  static void check_unsigned(std::uint64_t value);

  Tensor tensor_;
  Kind kind_ = Kind::kTensor;
  union {
    std::int64_t integer_ = 0;
    double floating_;
  };
};

/// Two operands as tensors: numbers take the other's dtype.
struct OperandPair {
  Tensor x;
  Tensor y;
};
inline OperandPair take_both(Operand&& x, Operand&& y) {
  if (!x.is_number()) {
    Tensor a = std::move(x).take();
    if (!y.is_number()) return {std::move(a), std::move(y).take()};
    Tensor b = std::move(y).take_as(a.dtype());
    return {std::move(a), std::move(b)};
  }
  if (y.is_number()) return {std::move(x).take(), std::move(y).take()};
  Tensor b = std::move(y).take();
  Tensor a = std::move(x).take_as(b.dtype());
  return {std::move(a), std::move(b)};
}

}  // namespace tandem
