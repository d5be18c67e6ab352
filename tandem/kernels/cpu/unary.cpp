#include <cmath>
#include <cstdint>

#include "tandem/kernels/cpu/plain_elementwise.h"

namespace tandem {
namespace {

#define TANDEM_UNARY(NAME, EXPRESSION)   \
  struct NAME {                          \
    template <class T>                   \
    T operator()(T x) const {            \
      return static_cast<T>(EXPRESSION); \
    }                                    \
  }
TANDEM_UNARY(NegF, -x);
TANDEM_UNARY(AbsF, x < T(0) ? -x : x);
TANDEM_UNARY(SignF, x != x ? x : T((x > T(0)) - (x < T(0))));
TANDEM_UNARY(SquareF, x* x);
TANDEM_UNARY(SqrtF, std::sqrt(x));
TANDEM_UNARY(RsqrtF, T(1) / std::sqrt(x));
TANDEM_UNARY(ReciprocalF, T(1) / x);
TANDEM_UNARY(ExpF, std::exp(x));
TANDEM_UNARY(LogF, std::log(x));
TANDEM_UNARY(Log1pF, std::log1p(x));
TANDEM_UNARY(SinF, std::sin(x));
TANDEM_UNARY(CosF, std::cos(x));
TANDEM_UNARY(TanhF, std::tanh(x));
TANDEM_UNARY(SigmoidF, T(1) / (T(1) + std::exp(-x)));
TANDEM_UNARY(ErfF, std::erf(x));
TANDEM_UNARY(FloorF, std::floor(x));
#undef TANDEM_UNARY

#define TANDEM_KERNEL(OP, T, SUFFIX) \
  const KernelRegistration k##OP##SUFFIX{{.op = #OP, .types = {{"T", {dtype_of<T>}}}, .run = unary_kernel<OP##F, T>}}
#define TANDEM_FLOATS(OP)           \
  TANDEM_KERNEL(OP, float, Float);  \
  TANDEM_KERNEL(OP, double, Double); \
  TANDEM_KERNEL(OP, Half, Half);    \
  TANDEM_KERNEL(OP, BFloat16, BFloat16)
TANDEM_FLOATS(Neg);
TANDEM_FLOATS(Abs);
TANDEM_FLOATS(Sign);
TANDEM_FLOATS(Square);
TANDEM_FLOATS(Sqrt);
TANDEM_FLOATS(Rsqrt);
TANDEM_FLOATS(Reciprocal);
TANDEM_FLOATS(Exp);
TANDEM_FLOATS(Log);
TANDEM_FLOATS(Log1p);
TANDEM_FLOATS(Sin);
TANDEM_FLOATS(Cos);
TANDEM_FLOATS(Tanh);
TANDEM_FLOATS(Sigmoid);
TANDEM_FLOATS(Erf);
TANDEM_FLOATS(Floor);
TANDEM_KERNEL(Neg, std::int32_t, Int32);
TANDEM_KERNEL(Neg, std::int64_t, Int64);
TANDEM_KERNEL(Abs, std::int32_t, Int32);
TANDEM_KERNEL(Abs, std::int64_t, Int64);
TANDEM_KERNEL(Square, std::int32_t, Int32);
TANDEM_KERNEL(Square, std::int64_t, Int64);

}  // namespace
}  // namespace tandem
