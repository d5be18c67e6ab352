#include <cmath>
#include <limits>
#include <numbers>

#include "tandem/core/error.h"
#include "tandem/keras/internal/promotion.h"
#include "tandem/keras/ops/elementwise.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/bessel_ops.h"
#include "tandem/ops/bitwise_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/special_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::ops {
namespace {

using keras::internal::in_float;
using keras::internal::promote;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor scalar_like(double value, const Tensor& x) {
  return tandem::cast(Tensor(std::vector<double>{value})[0], x.dtype());
}

}  // namespace

Tensor abs(const Tensor& x) { return x.dtype() == boolean ? x : tandem::abs(x); }
Tensor absolute(const Tensor& x) { return ops::abs(x); }
Tensor fabs(const Tensor& x) { return tandem::abs(in_float(x)); }
Tensor arccos(const Tensor& x) { return acos(in_float(x)); }
Tensor arccosh(const Tensor& x) { return acosh(in_float(x)); }
Tensor arcsin(const Tensor& x) { return asin(in_float(x)); }
Tensor arcsinh(const Tensor& x) { return asinh(in_float(x)); }
Tensor arctan(const Tensor& x) { return atan(in_float(x)); }
Tensor arctanh(const Tensor& x) { return atanh(in_float(x)); }
Tensor bitwise_invert(const Tensor& x) { return bitwise::invert(x); }
Tensor bitwise_not(const Tensor& x) { return bitwise::invert(x); }
Tensor cbrt(const Tensor& given) {
  const Tensor x = in_float(given);
  return tandem::sign(x) * tandem::pow(tandem::abs(x), 1.0 / 3.0);
}
Tensor ceil(const Tensor& x) { return math::ceil(in_float(x)); }
Tensor conj(const Tensor& x) { return math::conj(x); }
Tensor conjugate(const Tensor& x) { return math::conj(x); }
Tensor cos(const Tensor& x) { return tandem::cos(in_float(x)); }
Tensor cosh(const Tensor& x) { return tandem::cosh(in_float(x)); }
Tensor deg2rad(const Tensor& x) { return in_float(x) * (std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return in_float(x) * (180 / std::numbers::pi); }
Tensor erf(const Tensor& x) { return math::erf(in_float(x)); }
Tensor erfc(const Tensor& x) { return math::erfc(in_float(x)); }
Tensor erfinv(const Tensor& x) { return math::erfinv(in_float(x)); }
Tensor exp(const Tensor& x) { return tandem::exp(in_float(x)); }
Tensor exp2(const Tensor& x) { return tandem::exp(in_float(x) * std::numbers::ln2); }
Tensor expm1(const Tensor& x) { return math::expm1(in_float(x)); }
Tensor floor(const Tensor& x) { return tandem::floor(in_float(x)); }
Tensor i0(const Tensor& x) { return math::bessel_i0(in_float(x)); }
Tensor imag(const Tensor& x) { return math::imag(x); }
Tensor isfinite(const Tensor& x) { return math::is_finite(in_float(x)); }
Tensor isinf(const Tensor& x) { return math::is_inf(in_float(x)); }
Tensor isnan(const Tensor& x) { return math::is_nan(in_float(x)); }
Tensor isneginf(const Tensor& x) { return tandem::equal(in_float(x), -kInfinity); }
Tensor isposinf(const Tensor& x) { return tandem::equal(in_float(x), kInfinity); }
Tensor isreal(const Tensor& x) {
  if (!is_complex(x.dtype())) return ones_like(x, boolean);
  return tandem::equal(math::imag(x), 0);
}
Tensor log(const Tensor& x) { return math::log(in_float(x)); }
Tensor log10(const Tensor& x) { return math::log(in_float(x)) / std::numbers::ln10; }
Tensor log1p(const Tensor& x) { return math::log1p(in_float(x)); }
Tensor log2(const Tensor& x) { return math::log(in_float(x)) / std::numbers::ln2; }
Tensor logical_not(const Tensor& x) { return tandem::logical_not(tandem::cast(x, boolean)); }
Tensor negative(const Tensor& x) { return tandem::negative(x); }
Tensor real(const Tensor& x) { return math::real(x); }
Tensor reciprocal(const Tensor& x) { return math::reciprocal(in_float(x)); }
Tensor rsqrt(const Tensor& x) { return math::rsqrt(in_float(x)); }
Tensor sign(const Tensor& x) { return tandem::sign(x); }
Tensor signbit(const Tensor& x) {
  if (x.dtype() == boolean) return zeros_like(x);
  if (!is_floating(x.dtype())) return tandem::less(x, 0);
  // Minus zero too: its reciprocal is minus infinity.
  return tandem::logical_or(
      tandem::less(x, 0),
      tandem::logical_and(tandem::equal(x, 0), tandem::less(math::reciprocal(x), 0)));
}
Tensor sin(const Tensor& x) { return tandem::sin(in_float(x)); }
Tensor sinc(const Tensor& given) {
  const Tensor x = in_float(given) * std::numbers::pi;
  const Tensor is_zero = tandem::equal(x, 0);
  const Tensor safe = tandem::where(is_zero, 1.0, x);
  return tandem::where(is_zero, 1.0, tandem::sin(safe) / safe);
}
Tensor sinh(const Tensor& x) { return tandem::sinh(in_float(x)); }
Tensor sqrt(const Tensor& x) { return tandem::sqrt(in_float(x)); }
Tensor square(const Tensor& x) {
  return tandem::square(x.dtype() == boolean ? tandem::cast(x, int32) : x);
}
Tensor tan(const Tensor& x) { return tandem::tan(in_float(x)); }
Tensor tanh(const Tensor& x) { return tandem::tanh(in_float(x)); }
Tensor trunc(const Tensor& x) {
  if (!is_floating(x.dtype())) return x;
  return tandem::where(tandem::less(x, 0), math::ceil(x), tandem::floor(x));
}
Tensor hard_swish(const Tensor& x) { return hard_silu(x); }
Tensor log_sigmoid(const Tensor& x) { return math::log_sigmoid(x); }
Tensor relu(const Tensor& x) { return nn::relu(x); }
Tensor relu6(const Tensor& x) { return nn::relu6(x); }
Tensor selu(const Tensor& x) { return nn::selu(x); }
Tensor sigmoid(const Tensor& x) { return activations::sigmoid(x); }
Tensor silu(const Tensor& x) { return nn::silu(x); }
Tensor softplus(const Tensor& x) { return nn::softplus(x); }
Tensor softsign(const Tensor& x) { return nn::softsign(x); }
Tensor swish(const Tensor& x) { return nn::silu(x); }
Tensor gelu(const Tensor& x, bool approximate) { return nn::gelu(x, approximate); }
Tensor softmax(const Tensor& x, std::int64_t axis) { return activations::softmax(x, axis); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return nn::log_softmax(x, axis); }
Tensor angle(const Tensor& x) { return math::angle(in_float(x)); }

Tensor round(const Tensor& x, int decimals) {
  if (decimals == 0) return tandem::round(x);
  const double factor = std::pow(10.0, decimals);
  return tandem::round(in_float(x) * factor) / factor;
}
Tensor clip(const Tensor& given, Operand x_min, Operand x_max) {
  const Tensor x = given.dtype() == boolean ? tandem::cast(given, int32) : given;
  const bool fraction = (x_min.is_number() && is_floating(x_min.dtype())) ||
                        (x_max.is_number() && is_floating(x_max.dtype()));
  return clip_by_value(fraction ? in_float(x) : x, std::move(x_min), std::move(x_max));
}
Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x;
  double most = 3.4028234663852886e38;
  if (x.dtype() == float64) most = std::numeric_limits<double>::max();
  if (x.dtype() == float16) most = 65504;
  if (x.dtype() == bfloat16) most = 3.3895313892515355e38;
  Tensor y = tandem::where(math::is_nan(x), scalar_like(nan, x), x);
  y = tandem::where(isposinf(y), scalar_like(posinf.value_or(most), x), y);
  return tandem::where(isneginf(y), scalar_like(neginf.value_or(-most), x), y);
}
Tensor cast(const Tensor& x, DType dtype) { return tandem::cast(x, dtype); }
Tensor saturate_cast(const Tensor& x, DType dtype) { return tandem::saturate_cast(x, dtype); }

namespace {

template <class F>
Tensor both(Operand a, Operand b, F function) {
  auto [x, y] = promote(std::move(a), std::move(b));
  return function(x, y);
}
template <class F>
Tensor both_floats(Operand a, Operand b, F function) {
  const auto [x, y] = promote(std::move(a), std::move(b));
  return function(in_float(x), in_float(y));
}

}  // namespace

#define TANDEM_BOTH(NAME, FUNCTION)                                               \
  Tensor NAME(Operand x1, Operand x2) {                                           \
    return both(std::move(x1), std::move(x2),                                     \
                [](const Tensor& x, const Tensor& y) { return FUNCTION(x, y); }); \
  }
#define TANDEM_BOTH_FLOATS(NAME, FUNCTION)                                               \
  Tensor NAME(Operand x1, Operand x2) {                                                  \
    return both_floats(std::move(x1), std::move(x2),                                     \
                       [](const Tensor& x, const Tensor& y) { return FUNCTION(x, y); }); \
  }
#define TANDEM_LOGICAL(NAME, FUNCTION)                            \
  Tensor NAME(Operand x1, Operand x2) {                           \
    return FUNCTION(tandem::cast(std::move(x1).take(), boolean),  \
                    tandem::cast(std::move(x2).take(), boolean)); \
  }
Tensor add(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return x.dtype() == boolean ? tandem::logical_or(x, y) : tandem::add(x, y);
  });
}
TANDEM_BOTH(subtract, tandem::subtract)
Tensor multiply(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return x.dtype() == boolean ? tandem::logical_and(x, y) : tandem::multiply(x, y);
  });
}
TANDEM_BOTH_FLOATS(divide, tandem::divide)
TANDEM_BOTH_FLOATS(true_divide, tandem::divide)
TANDEM_BOTH_FLOATS(divide_no_nan, math::divide_no_nan)
TANDEM_BOTH(floor_divide, tandem::floordiv)
TANDEM_BOTH(mod, tandem::floormod)
Tensor fmod(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return is_floating(x.dtype()) ? x - y * trunc(x / y) : truncatemod(x, y);
  });
}
TANDEM_BOTH(power, tandem::pow)
TANDEM_BOTH(maximum, tandem::maximum)
TANDEM_BOTH(minimum, tandem::minimum)
Tensor fmax(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return tandem::where(isnan(x), y, tandem::where(isnan(y), x, tandem::maximum(x, y)));
  });
}
Tensor fmin(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return tandem::where(isnan(x), y, tandem::where(isnan(y), x, tandem::minimum(x, y)));
  });
}
TANDEM_BOTH_FLOATS(arctan2, tandem::atan2)
Tensor hypot(Operand x1, Operand x2) {
  return both_floats(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    const Tensor a = tandem::abs(x), b = tandem::abs(y);
    const Tensor most = tandem::maximum(a, b), least = tandem::minimum(a, b);
    const Tensor ratio = math::divide_no_nan(least, most);
    return most * tandem::sqrt(1 + tandem::square(ratio));
  });
}
Tensor heaviside(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return tandem::where(tandem::less(x, 0), zeros_like(x),
                         tandem::where(tandem::greater(x, 0), ones_like(x), y));
  });
}
Tensor logaddexp(Operand x1, Operand x2) {
  return both_floats(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    const Tensor delta = x - y;
    return tandem::where(math::is_nan(delta), x + y,
                         tandem::maximum(x, y) + math::log1p(tandem::exp(-tandem::abs(delta))));
  });
}
Tensor logaddexp2(Operand x1, Operand x2) {
  return both_floats(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    return logaddexp(x * std::numbers::ln2, y * std::numbers::ln2) / std::numbers::ln2;
  });
}
TANDEM_BOTH_FLOATS(nextafter, math::nextafter)
Tensor ldexp(Operand x1, Operand x2) {
  const Tensor x = in_float(std::move(x1).take()), e = std::move(x2).take();
  return x * tandem::pow(scalar_like(2, x), tandem::cast(e, x.dtype()));
}
Tensor gcd(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    const Tensor a = tandem::abs(x) + zeros_like(y), b = tandem::abs(y) + zeros_like(x);
    const auto [g, rest] = while_loop(
        [](const Tensor&, const Tensor& v) { return reduce_any(tandem::not_equal(v, 0)); },
        [](const Tensor& u, const Tensor& v) {
          const Tensor done = tandem::equal(v, 0);
          const Tensor safe = tandem::where(done, ones_like(v), v);
          return std::pair(tandem::where(done, u, v),
                           tandem::where(done, v, tandem::floormod(u, safe)));
        },
        std::pair(a, b));
    return g;
  });
}
Tensor lcm(Operand x1, Operand x2) {
  return both(std::move(x1), std::move(x2), [](const Tensor& x, const Tensor& y) {
    const Tensor divisor = gcd(x, y);
    const Tensor none = tandem::equal(divisor, 0);
    const Tensor safe = tandem::where(none, ones_like(divisor), divisor);
    return tandem::abs(tandem::floordiv(x, safe) * y);
  });
}
TANDEM_BOTH(equal, tandem::equal)
TANDEM_BOTH(not_equal, tandem::not_equal)
TANDEM_BOTH(less, tandem::less)
TANDEM_BOTH(less_equal, tandem::less_equal)
TANDEM_BOTH(greater, tandem::greater)
TANDEM_BOTH(greater_equal, tandem::greater_equal)
TANDEM_LOGICAL(logical_and, tandem::logical_and)
TANDEM_LOGICAL(logical_or, tandem::logical_or)
TANDEM_LOGICAL(logical_xor, math::logical_xor)
TANDEM_BOTH(bitwise_and, bitwise::bitwise_and)
TANDEM_BOTH(bitwise_or, bitwise::bitwise_or)
TANDEM_BOTH(bitwise_xor, bitwise::bitwise_xor)
TANDEM_BOTH(bitwise_left_shift, bitwise::left_shift)
TANDEM_BOTH(bitwise_right_shift, bitwise::right_shift)
TANDEM_BOTH(left_shift, bitwise::left_shift)
TANDEM_BOTH(right_shift, bitwise::right_shift)
#undef TANDEM_BOTH
#undef TANDEM_BOTH_FLOATS
#undef TANDEM_LOGICAL

Tensor isclose(Operand x1, Operand x2, double rtol, double atol, bool equal_nan) {
  const auto [a, b] = promote(std::move(x1), std::move(x2));
  const Tensor x = in_float(a), y = in_float(b);
  const Tensor finite = tandem::logical_and(math::is_finite(x), math::is_finite(y));
  const Tensor close = tandem::less_equal(tandem::abs(x - y), rtol * tandem::abs(y) + atol);
  Tensor result = tandem::where(finite, close, tandem::equal(x, y));
  if (equal_nan)
    result = tandem::logical_or(result, tandem::logical_and(math::is_nan(x), math::is_nan(y)));
  return result;
}
Tensor allclose(Operand x1, Operand x2, double rtol, double atol, bool equal_nan) {
  return reduce_all(isclose(std::move(x1), std::move(x2), rtol, atol, equal_nan));
}
Tensor where(const Tensor& condition, Operand x1, Operand x2) {
  const auto [x, y] = promote(std::move(x1), std::move(x2));
  return tandem::where(tandem::cast(condition, boolean), x, y);
}
std::vector<Tensor> where(const Tensor& condition) {
  const Tensor places = tandem::cast(tandem::where(tandem::cast(condition, boolean)), int32);
  return unstack(places, condition.rank(), 1);
}
Tensor select(const std::vector<Tensor>& conditions, const std::vector<Tensor>& choices,
              Operand default_value) {
  if (conditions.size() != choices.size() || choices.empty()) {
    throw InvalidArgumentError(cat("select: as many choices as conditions are wanted, got ",
                                   choices.size(), " and ", conditions.size(), "."));
  }
  Tensor result = promote(choices.back(), std::move(default_value)).y;
  for (std::size_t i = conditions.size(); i-- > 0;)
    result = ops::where(conditions[i], choices[i], result);
  return result;
}

}  // namespace tandem::keras::ops
