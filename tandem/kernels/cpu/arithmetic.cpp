#include <cmath>

#include "tandem/kernels/cpu/plain_elementwise.h"

namespace tandem {
namespace {

#define TANDEM_BINARY(NAME, EXPRESSION) \
  struct NAME {                         \
    template <class T>                  \
    T operator()(T x, T y) const {      \
      return static_cast<T>(EXPRESSION); \
    }                                   \
  }
TANDEM_BINARY(Add, x + y);
TANDEM_BINARY(Sub, x - y);
TANDEM_BINARY(Mul, x* y);
TANDEM_BINARY(Quotient, x / y);
TANDEM_BINARY(Max, (x > y || x != x) ? x : y);
TANDEM_BINARY(Min, (x < y || x != x) ? x : y);
TANDEM_BINARY(SquaredDifference, (x - y) * (x - y));
TANDEM_BINARY(PowF, std::pow(x, y));
TANDEM_BINARY(DivNoNan, y == T(0) ? T(0) : x / y);
TANDEM_BINARY(MulNoNan, y == T(0) ? T(0) : x * y);
#undef TANDEM_BINARY


#define TANDEM_FLOATS(OP, F)                                                                                        \
  const KernelRegistration k##F##OP##Float{{.op = #OP, .types = {{"T", {DType::kFloat}}}, .run = binary_kernel<F, float>}};     \
  const KernelRegistration k##F##OP##Double{{.op = #OP, .types = {{"T", {DType::kDouble}}}, .run = binary_kernel<F, double>}};  \
  const KernelRegistration k##F##OP##Half{{.op = #OP, .types = {{"T", {DType::kHalf}}}, .run = binary_kernel<F, Half>}};        \
  const KernelRegistration k##F##OP##BFloat16{{.op = #OP, .types = {{"T", {DType::kBFloat16}}}, .run = binary_kernel<F, BFloat16>}}
#define TANDEM_INTS(OP, F)                                                                                          \
  const KernelRegistration k##F##OP##Int32{{.op = #OP, .types = {{"T", {DType::kInt32}}}, .run = binary_kernel<F, std::int32_t>}}; \
  const KernelRegistration k##F##OP##Int64{{.op = #OP, .types = {{"T", {DType::kInt64}}}, .run = binary_kernel<F, std::int64_t>}}

TANDEM_FLOATS(AddV2, Add);
TANDEM_INTS(AddV2, Add);
TANDEM_FLOATS(Sub, Sub);
TANDEM_INTS(Sub, Sub);
TANDEM_FLOATS(Mul, Mul);
TANDEM_INTS(Mul, Mul);
TANDEM_FLOATS(RealDiv, Quotient);
TANDEM_FLOATS(Maximum, Max);
TANDEM_INTS(Maximum, Max);
TANDEM_FLOATS(Minimum, Min);
TANDEM_INTS(Minimum, Min);
TANDEM_FLOATS(SquaredDifference, SquaredDifference);
TANDEM_FLOATS(Pow, PowF);
TANDEM_FLOATS(DivNoNan, DivNoNan);
TANDEM_FLOATS(MulNoNan, MulNoNan);

}  // namespace
}  // namespace tandem
