#include "tandem/keras/internal/promotion.h"

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::internal {
namespace {

bool is_whole(DType t) { return is_integer(t) || t == DType::kBool; }

// The wider of two integer dtypes; signed ones that hold the unsigned.
DType wider_integer(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  const std::size_t size_a = dtype_size(a), size_b = dtype_size(b);
  if (is_unsigned_integer(a) == is_unsigned_integer(b)) return size_a >= size_b ? a : b;
  const DType s = is_unsigned_integer(a) ? b : a, u = is_unsigned_integer(a) ? a : b;
  if (dtype_size(s) > dtype_size(u)) return s;
  switch (dtype_size(u)) {
    case 1: return DType::kInt16;
    case 2: return DType::kInt32;
    case 4: return DType::kInt64;
    default: return DType::kFloat;
  }
}

DType to_complex(DType t) { return t == DType::kDouble ? DType::kComplex128 : DType::kComplex64; }

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (is_whole(a) && is_whole(b)) return wider_integer(a, b);
  if (is_complex(a) || is_complex(b)) {
    const DType x = is_complex(a) ? a : to_complex(a), y = is_complex(b) ? b : to_complex(b);
    return x == DType::kComplex128 || y == DType::kComplex128 ? DType::kComplex128
                                                              : DType::kComplex64;
  }
  if (is_floating(a) && is_whole(b)) return a;
  if (is_floating(b) && is_whole(a)) return b;
  if (is_floating(a) && is_floating(b)) {
    if (dtype_size(a) == dtype_size(b)) return DType::kFloat;  // half and bfloat16
    return dtype_size(a) > dtype_size(b) ? a : b;
  }
  throw InvalidArgumentError(cat("The dtypes ", a, " and ", b, " have no dtype together."));
}

OperandPair promote(Operand x, Operand y) {
  const DType a = x.dtype(), b = y.dtype();
  DType together = promoted(a, b);
  if (x.is_number() != y.is_number()) {
    const DType tensor = x.is_number() ? b : a, number = x.is_number() ? a : b;
    together = is_floating(number) && is_whole(tensor) ? DType::kFloat : tensor;
    if (tensor == DType::kBool && number != DType::kBool) together = number;
  }
  const auto as = [&](Operand o) {
    Tensor t = std::move(o).take_as(together);
    return t.dtype() == together ? t : cast(std::move(t), together);
  };
  return {as(std::move(x)), as(std::move(y))};
}

Tensor in_float(const Tensor& x) { return is_whole(x.dtype()) ? cast(x, float32) : x; }

}  // namespace tandem::keras::internal
