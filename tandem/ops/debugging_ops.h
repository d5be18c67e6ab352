#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

/// Checks of values and shapes: InvalidArgumentError, with `message` and the values, where one does
/// not hold. In traced functions a check of values runs, and throws, when the function does; what
/// the known shapes and dtypes refuse is thrown at once.
namespace tandem::debugging {

// ---- Values. ----

/// `x` and `y` broadcast; every element must hold.
TANDEM_EXPORT void assert_equal(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_none_equal(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_less(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_less_equal(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_greater(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_greater_equal(Operand x, Operand y, StringView message = "");
TANDEM_EXPORT void assert_negative(const Tensor& x, StringView message = "");
TANDEM_EXPORT void assert_positive(const Tensor& x, StringView message = "");
TANDEM_EXPORT void assert_non_negative(const Tensor& x, StringView message = "");
TANDEM_EXPORT void assert_non_positive(const Tensor& x, StringView message = "");
/// |x - y| ≤ atol + rtol · |y|; by default ten times the dtype's epsilon each.
TANDEM_EXPORT void assert_near(const Tensor& x, const Tensor& y, double rtol = -1, double atol = -1,
                               StringView message = "");
/// No NaN, no infinity. Returns x, after the check.
TANDEM_EXPORT Tensor assert_all_finite(const Tensor& x, StringView message);
/// Assert: `data` is what the message shows.
TANDEM_EXPORT void Assert(const Tensor& condition, const std::vector<Tensor>& data,
                          std::int64_t summarize = 3);

// ---- Shapes and dtypes. ----

TANDEM_EXPORT void assert_rank(const Tensor& x, int rank, StringView message = "");
TANDEM_EXPORT void assert_rank_at_least(const Tensor& x, int rank, StringView message = "");
TANDEM_EXPORT void assert_rank_in(const Tensor& x, const std::vector<int>& ranks,
                                  StringView message = "");
TANDEM_EXPORT void assert_scalar(const Tensor& x, StringView message = "");
TANDEM_EXPORT void assert_type(const Tensor& x, DType dtype, StringView message = "");
TANDEM_EXPORT void assert_integer(const Tensor& x, StringView message = "");
/// All of one floating dtype, which is returned; float32 for no tensors.
TANDEM_EXPORT DType assert_same_float_dtype(const std::vector<Tensor>& tensors);
/// Sizes by name or number, "?" or -1 for any: a name has one size everywhere. Names must be known
/// sizes, else they are checked as far as they are.
///
///     td::debugging::assert_shapes({{x, {"N", "Q"}}, {y, {"N", "D"}}, {scale, {}}});
struct SizeSymbol {
  SizeSymbol(std::int64_t size) : name(std::to_string(size)) {}
  SizeSymbol(int size) : name(std::to_string(size)) {}
  SizeSymbol(const char* symbol) : name(symbol) {}
  std::string name;
};
TANDEM_EXPORT void assert_shapes(
    const std::vector<std::pair<Tensor, std::vector<SizeSymbol>>>& shapes, StringView message = "");
/// Integers, floats, complex numbers; not bool or string.
TANDEM_EXPORT bool is_numeric_tensor(const Tensor& x);

}  // namespace tandem::debugging
