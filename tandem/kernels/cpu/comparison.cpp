#include <cstdint>
#include <string>

#include "tandem/kernels/cpu/plain_elementwise.h"

namespace tandem {
namespace {

#define TANDEM_COMPARE(NAME, EXPRESSION) \
  struct NAME {                          \
    template <class T>                   \
    bool operator()(T x, T y) const {    \
      return EXPRESSION;                 \
    }                                    \
  }
TANDEM_COMPARE(EqualTo, x == y);
TANDEM_COMPARE(NotEqualTo, x != y);
TANDEM_COMPARE(LessThan, x < y);
TANDEM_COMPARE(LessOrEqual, x <= y);
TANDEM_COMPARE(GreaterThan, x > y);
TANDEM_COMPARE(GreaterOrEqual, x >= y);
TANDEM_COMPARE(Both, x && y);
TANDEM_COMPARE(Either, x || y);
#undef TANDEM_COMPARE
struct Not {
  bool operator()(bool x) const { return !x; }
};

#define TANDEM_KERNEL(OP, F, T, SUFFIX) \
  const KernelRegistration k##OP##SUFFIX{{.op = #OP, .types = {{"T", {dtype_of<T>}}}, .run = binary_kernel<F, T, bool>}}
#define TANDEM_REALS(OP, F)                  \
  TANDEM_KERNEL(OP, F, float, Float);        \
  TANDEM_KERNEL(OP, F, double, Double);      \
  TANDEM_KERNEL(OP, F, Half, Half);          \
  TANDEM_KERNEL(OP, F, BFloat16, BFloat16);  \
  TANDEM_KERNEL(OP, F, std::int8_t, Int8);   \
  TANDEM_KERNEL(OP, F, std::int16_t, Int16); \
  TANDEM_KERNEL(OP, F, std::int32_t, Int32); \
  TANDEM_KERNEL(OP, F, std::int64_t, Int64); \
  TANDEM_KERNEL(OP, F, std::uint8_t, Uint8)
TANDEM_REALS(Equal, EqualTo);
TANDEM_REALS(NotEqual, NotEqualTo);
TANDEM_REALS(Less, LessThan);
TANDEM_REALS(LessEqual, LessOrEqual);
TANDEM_REALS(Greater, GreaterThan);
TANDEM_REALS(GreaterEqual, GreaterOrEqual);
TANDEM_KERNEL(Equal, EqualTo, bool, Bool);
TANDEM_KERNEL(NotEqual, NotEqualTo, bool, Bool);
const KernelRegistration kAnd{{.op = "LogicalAnd", .run = binary_kernel<Both, bool>}};
const KernelRegistration kOr{{.op = "LogicalOr", .run = binary_kernel<Either, bool>}};
const KernelRegistration kNot{{.op = "LogicalNot", .run = unary_kernel<Not, bool>}};

}  // namespace
}  // namespace tandem
