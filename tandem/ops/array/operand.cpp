#include "tandem/ops/operand.h"

#include <cmath>
#include <complex>
#include <limits>

#include "tandem/core/array.h"
#include "tandem/core/error.h"

namespace tandem {
namespace {

template <class T>
Tensor scalar_of(T value) {
  return Tensor(Array::scalar<T>(value));
}

[[noreturn]] void does_not_fit(const std::string& value, DType dtype, const char* advice) {
  throw InvalidArgumentError(cat("The value ", value, " does not fit into dtype ", dtype,
                                 " of the other operand: ", advice));
}

template <class T>
Tensor integer_as(std::int64_t value, DType dtype) {
  const bool fits =
      std::is_unsigned_v<T>
          ? value >= 0 && static_cast<std::uint64_t>(value) <= std::numeric_limits<T>::max()
          : value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
                value <= static_cast<std::int64_t>(std::numeric_limits<T>::max());
  if (!fits) does_not_fit(cat(value), dtype, "td::cast the other operand to a larger dtype.");
  return scalar_of(static_cast<T>(value));
}

// Bits of the significand, the hidden one included; infinity when the rounded value overflows.
struct FloatFormat {
  int digits;
  double (*round)(double);
};
double through_float(double v) { return static_cast<float>(v); }
double through_half(double v) { return static_cast<float>(Half(static_cast<float>(v))); }
double through_bfloat16(double v) { return static_cast<float>(BFloat16(static_cast<float>(v))); }
double unrounded(double v) { return v; }

FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::kHalf: return {11, through_half};
    case DType::kBFloat16: return {8, through_bfloat16};
    case DType::kDouble:
    case DType::kComplex128: return {53, unrounded};
    default: return {24, through_float};
  }
}

Tensor floating_scalar(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat: return scalar_of(static_cast<float>(value));
    case DType::kDouble: return scalar_of(value);
    case DType::kHalf: return scalar_of(Half(static_cast<float>(value)));
    case DType::kBFloat16: return scalar_of(BFloat16(static_cast<float>(value)));
    case DType::kComplex64: return scalar_of(std::complex<float>(static_cast<float>(value), 0.0f));
    default: return scalar_of(std::complex<double>(value, 0.0));
  }
}

}  // namespace

DType Operand::own_dtype() const noexcept {
  switch (kind_) {
    case Kind::kBool: return DType::kBool;
    case Kind::kInt32: return DType::kInt32;
    case Kind::kInt64: return DType::kInt64;
    default: return DType::kFloat;
  }
}

void Operand::check_unsigned(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgumentError(
        cat("The value ", value,
            " is beyond int64: make a uint64 tensor with td::scalar<std::uint64_t>."));
  }
}

Tensor Operand::make(DType wanted) const {
  const DType dtype = base_dtype(wanted);
  if ((kind_ == Kind::kBool) != (dtype == DType::kBool)) {
    if (kind_ == Kind::kBool) {
      does_not_fit(integer_ ? "true" : "false", dtype,
                   "write a number, or td::cast the tensor to bool.");
    }
    does_not_fit(kind_ == Kind::kFloating ? cat(floating_) : cat(integer_), dtype,
                 "write true or false, or td::cast the tensor to a number.");
  }
  if (dtype == DType::kBool) return scalar_of(integer_ != 0);

  if (is_floating(dtype) || is_complex(dtype)) {
    const FloatFormat format = format_of(dtype);
    if (kind_ == Kind::kFloating) {
      if (std::isfinite(floating_) && !std::isfinite(format.round(floating_))) {
        does_not_fit(cat(floating_), dtype,
                     "it would overflow to infinity; td::cast the tensor to a larger dtype.");
      }
      return floating_scalar(floating_, dtype);
    }
    const auto value = static_cast<double>(integer_);
    const std::int64_t exact = std::int64_t{1} << format.digits;
    if ((integer_ > exact || integer_ < -exact) &&
        (std::fabs(value) >= 0x1p63 || static_cast<std::int64_t>(value) != integer_ ||
         format.round(value) != value)) {
      does_not_fit(cat(integer_), dtype,
                   "it would be rounded; write it with a decimal point if that is meant, or "
                   "td::cast the tensor.");
    }
    return floating_scalar(value, dtype);
  }

  if (!is_integer(dtype)) {
    throw InvalidArgumentError(
        cat("A C++ number cannot be combined with a tensor of dtype ", wanted, "."));
  }
  std::int64_t value = integer_;
  if (kind_ == Kind::kFloating) {
    if (std::trunc(floating_) != floating_ || !(std::fabs(floating_) < 0x1p63)) {
      does_not_fit(cat(floating_), dtype,
                   "td::cast the tensor to a floating dtype first, or write an integer.");
    }
    value = static_cast<std::int64_t>(floating_);
  }
  switch (dtype) {
    case DType::kInt8: return integer_as<std::int8_t>(value, dtype);
    case DType::kInt16: return integer_as<std::int16_t>(value, dtype);
    case DType::kInt32: return integer_as<std::int32_t>(value, dtype);
    case DType::kInt64: return integer_as<std::int64_t>(value, dtype);
    case DType::kUint8: return integer_as<std::uint8_t>(value, dtype);
    case DType::kUint16: return integer_as<std::uint16_t>(value, dtype);
    case DType::kUint32: return integer_as<std::uint32_t>(value, dtype);
    default: return integer_as<std::uint64_t>(value, dtype);
  }
}

}  // namespace tandem
