#include "tandem/ops/cast_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/internal/known.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void cast_grad(GradientContext& g) {
  const DType from = g.input(0).dtype();
  const DType to = g.output().dtype();
  const auto flows = [](DType t) { return is_floating(t) || is_complex(t); };
  if (g.needs(0) && flows(from) && flows(to)) g.set(0, cast(g.grad(), from));
}

bool drop_cast_to_same_dtype(RewriteContext& r) { return r.replace_with(r.node().inputs()[0]); }

const OpRegistration kCast{
    {.name = "Cast",
     .inputs = "x: SrcT",
     .outputs = "y: DstT",
     .attrs = "SrcT: type; DstT: type; Truncate: bool = false",
     .shape = shapes::unchanged,
     .gradient = cast_grad,
     .traits = {.elementwise = true,
                .exact = Exactness::kAlways,
                .value = ShapeValue::kSameAsInput},
     .rewrite = drop_cast_to_same_dtype,
     .fuse = internal::fuse_cast,
     .doc = "The values in another dtype; with Truncate floating values are cut off, "
            "not rounded."}};

// Bits of the values that are not negative: of integers those below the sign, of floats those of
// the significand.
int value_bits(DType t) {
  switch (t) {
    case DType::kBFloat16: return 8;
    case DType::kHalf: return 11;
    case DType::kFloat: return 24;
    case DType::kDouble: return 53;
    default: return 8 * static_cast<int>(dtype_size(t)) - (is_signed_integer(t) ? 1 : 0);
  }
}

double largest_floating(DType t) {
  const double below_two = 2.0 - std::ldexp(1.0, 1 - value_bits(t));
  return std::ldexp(below_two, t == DType::kHalf ? 15 : t == DType::kDouble ? 1023 : 127);
}

Tensor clip_integers(Tensor x, DType to) {
  const DType from = x.dtype();
  const bool to_half = to == DType::kHalf;
  if (!is_integer(to) && !to_half) return x;
  const int bits = to_half ? 16 : value_bits(to);
  const std::int64_t low = to_half                   ? -65504
                           : is_unsigned_integer(to) ? 0
                                                     : -(std::int64_t{1} << (bits - 1)) * 2;
  if (is_signed_integer(from) && (is_unsigned_integer(to) || value_bits(from) > bits)) {
    x = maximum(std::move(x), internal::int_scalar(low, from));
  }
  if (value_bits(from) > bits || (to_half && value_bits(from) == 16)) {
    const auto high = to_half ? std::uint64_t{65504} : ~std::uint64_t{0} >> (64 - bits);
    x = minimum(std::move(x), internal::int_scalar(static_cast<std::int64_t>(high), from));
  }
  return x;
}

Tensor clip_floats(Tensor x, DType to) {
  const DType from = x.dtype();
  const double most = largest_floating(from);
  double low = -most;
  double high = most;
  if (is_integer(to)) {
    const int bits = value_bits(to);
    const int digits =
        std::min(bits, value_bits(from));  // the largest value of `from` that `to` has too
    low = is_unsigned_integer(to) ? 0.0 : -std::ldexp(1.0, bits);
    high = std::ldexp(std::ldexp(1.0, digits) - 1.0, bits - digits);
  } else if (largest_floating(to) < most) {
    high = largest_floating(to);
    low = -high;
  } else {
    return x;
  }
  const auto bound = [from](double value) { return constant(scalar(value), from); };
  return minimum(maximum(std::move(x), bound(std::max(low, -most))), bound(std::min(high, most)));
}

}  // namespace

Tensor cast(Tensor x, DTypeLike to) {
  const DType dtype = to;
  if (x.dtype() == dtype) return x;
  if (x.dtype() == DType::kString || dtype == DType::kString) {
    throw UnimplementedError(
        cat("Cast ", x.dtype(), " to ", dtype, " is not supported. ",
            dtype == DType::kString
                ? "td::strings::as_string writes numbers as texts."
                : "td::strings::to_number reads numbers from texts; words and names become numbers "
                  "by td::keras::StringLookup or td::keras::TextVectorization."));
  }
  return call1(kCast, {std::move(x)}, {{"DstT", dtype}});
}

Tensor saturate_cast(Tensor x, DTypeLike to) {
  const DType dtype = to;
  const DType from = x.dtype();
  if (from == dtype) return x;
  const bool real = is_integer(dtype) || is_floating(dtype);
  if (real && is_integer(from)) x = clip_integers(std::move(x), dtype);
  if (real && is_floating(from)) x = clip_floats(std::move(x), dtype);
  return cast(std::move(x), dtype);
}

Tensor cast_like(Tensor x, const Tensor& like) { return cast(std::move(x), like.dtype()); }

}  // namespace tandem
