#include "tandem/runtime/tensor_values.h"

#include "tandem/core/error.h"

namespace tandem::internal {

void check_row(std::int64_t expected, std::int64_t found) {
  if (expected == found) return;
  throw InvalidArgumentError(cat("The rows of a tensor must have equal lengths, but one has ",
                                 expected, " elements and another ", found,
                                 ". Rows of different lengths are a td::RaggedTensor."));
}

AnyNumber number_of(const Array& a) {
  const auto integer = [](std::int64_t value) {
    return AnyNumber{.kind = AnyNumber::Kind::kSigned, .integer = value};
  };
  const auto natural = [](std::uint64_t value) {
    return AnyNumber{.kind = AnyNumber::Kind::kUnsigned, .natural = value};
  };
  const auto real = [](double value) {
    return AnyNumber{.kind = AnyNumber::Kind::kReal, .real = value};
  };
  switch (a.dtype()) {
    case DType::kBool: return natural(*a.data<bool>() ? 1 : 0);
    case DType::kInt8: return integer(*a.data<std::int8_t>());
    case DType::kInt16: return integer(*a.data<std::int16_t>());
    case DType::kInt32: return integer(*a.data<std::int32_t>());
    case DType::kInt64: return integer(*a.data<std::int64_t>());
    case DType::kUint8: return natural(*a.data<std::uint8_t>());
    case DType::kUint16: return natural(*a.data<std::uint16_t>());
    case DType::kUint32: return natural(*a.data<std::uint32_t>());
    case DType::kUint64: return natural(*a.data<std::uint64_t>());
    case DType::kHalf: return real(static_cast<float>(*a.data<Half>()));
    case DType::kBFloat16: return real(static_cast<float>(*a.data<BFloat16>()));
    case DType::kFloat: return real(*a.data<float>());
    case DType::kDouble: return real(*a.data<double>());
    default:
      throw InvalidArgumentError(
          cat("item: a tensor of dtype ", a.dtype(),
              " holds no real number. Read it as its own element type, or use td::cast."));
  }
}

void throw_inexact(const Array& a, std::size_t bytes, bool has_fraction) {
  throw InvalidArgumentError(
      cat("item: the ", a.dtype(), " value ", a.to_string(), " cannot be read as a ", bytes * 8,
          "-bit ", has_fraction ? "floating-point number" : "integer", " without loss. Read it as ",
          a.dtype(), ", or round it first: td::cast."));
}

}  // namespace tandem::internal
