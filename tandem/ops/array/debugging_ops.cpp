#include "tandem/ops/debugging_ops.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::debugging {
namespace {

std::string headed(std::string_view message) {
  return message.empty() ? std::string() : cat(message, " ");
}

// Checks a comparison of two values and reports both.
template <class Compare>
void compare(Operand a, Operand b, std::string_view message, const char* relation, Compare holds) {
  const auto [x, y] = take_both(std::move(a), std::move(b));
  const Tensor fine = holds(x, y);
  const Tensor all = reduce_all(fine);
  if (!all.is_symbolic() && all.item<bool>()) return;
  assert_true(
      all, {Tensor(cat(headed(message), "Condition x ", relation, " y did not hold element-wise:")),
            Tensor("x = "), x, Tensor("y = "), y});
}

[[noreturn]] void refuse(std::string_view message, const std::string& what) {
  throw InvalidArgumentError(cat(headed(message), what));
}

std::string shape_of(const Tensor& x) { return cat(x.dtype(), x.partial_shape()); }

}  // namespace

void assert_equal(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message,
          "==", [](const Tensor& a, const Tensor& b) { return equal(a, b); });
}
void assert_none_equal(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message,
          "!=", [](const Tensor& a, const Tensor& b) { return not_equal(a, b); });
}
void assert_less(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message, "<",
          [](const Tensor& a, const Tensor& b) { return less(a, b); });
}
void assert_less_equal(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message,
          "<=", [](const Tensor& a, const Tensor& b) { return less_equal(a, b); });
}
void assert_greater(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message, ">",
          [](const Tensor& a, const Tensor& b) { return greater(a, b); });
}
void assert_greater_equal(Operand x, Operand y, StringView message) {
  compare(std::move(x), std::move(y), message,
          ">=", [](const Tensor& a, const Tensor& b) { return greater_equal(a, b); });
}
void assert_negative(const Tensor& x, StringView message) { assert_less(x, 0, message); }
void assert_positive(const Tensor& x, StringView message) { assert_less(0, x, message); }
void assert_non_negative(const Tensor& x, StringView message) { assert_less_equal(0, x, message); }
void assert_non_positive(const Tensor& x, StringView message) { assert_less_equal(x, 0, message); }

void assert_near(const Tensor& x, const Tensor& y, double rtol, double atol, StringView message) {
  const auto tolerance = [&](double given) {
    if (given >= 0) return given;
    switch (x.dtype()) {
      case DType::kDouble:
      case DType::kComplex128: return 10 * std::ldexp(1.0, -52);
      case DType::kHalf: return 10 * std::ldexp(1.0, -10);
      case DType::kBFloat16: return 10 * std::ldexp(1.0, -7);
      default: return 10 * std::ldexp(1.0, -23);
    }
  };
  const Tensor allowed = tolerance(rtol) * abs(y) + tolerance(atol);
  const Tensor all = reduce_all(abs(x - y) <= allowed);
  if (!all.is_symbolic() && all.item<bool>()) return;
  assert_true(all, {Tensor(cat(headed(message), "x and y not equal to tolerance rtol = ",
                               tolerance(rtol), ", atol = ", tolerance(atol))),
                    Tensor("x = "), x, Tensor("y = "), y});
}

Tensor assert_all_finite(const Tensor& x, StringView message) {
  return check_numerics(x, std::string(message));
}

void Assert(const Tensor& condition, const std::vector<Tensor>& data, std::int64_t summarize) {
  assert_true(condition, data, summarize);
}

void assert_rank(const Tensor& x, int rank, StringView message) {
  if (x.rank() >= 0 && x.rank() != rank) {
    refuse(message, cat("The tensor must have rank ", rank, ". Received rank ", x.rank(), ": ",
                        shape_of(x), "."));
  }
}
void assert_rank_at_least(const Tensor& x, int rank, StringView message) {
  if (x.rank() >= 0 && x.rank() < rank) {
    refuse(message, cat("The tensor must have rank at least ", rank, ". Received rank ", x.rank(),
                        ": ", shape_of(x), "."));
  }
}
void assert_rank_in(const Tensor& x, const std::vector<int>& ranks, StringView message) {
  if (x.rank() < 0 || std::find(ranks.begin(), ranks.end(), x.rank()) != ranks.end()) return;
  std::string list;
  for (const int rank : ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  refuse(message, cat("The tensor must have a rank in (", list, "). Received rank ", x.rank(), ": ",
                      shape_of(x), "."));
}
void assert_scalar(const Tensor& x, StringView message) {
  if (x.rank() > 0) refuse(message, cat("Expected a scalar, got ", shape_of(x), "."));
}
void assert_type(const Tensor& x, DType dtype, StringView message) {
  if (x.dtype() != dtype)
    refuse(message, cat("The tensor must be of type ", dtype, ", got ", shape_of(x), "."));
}
void assert_integer(const Tensor& x, StringView message) {
  if (!is_integer(x.dtype()))
    refuse(message, cat("Expected \"x\" to be integer type. Found: ", x.dtype(), "."));
}

DType assert_same_float_dtype(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return float32;
  const DType dtype = tensors.front().dtype();
  for (const Tensor& t : tensors) {
    if (t.dtype() != dtype) {
      throw InvalidArgumentError(
          cat("Tensors are of different dtypes: ", dtype, " and ", t.dtype(), "."));
    }
  }
  if (!is_floating(dtype))
    throw InvalidArgumentError(cat("Expected a floating point type, got ", dtype, "."));
  return dtype;
}

void assert_shapes(const std::vector<std::pair<Tensor, std::vector<SizeSymbol>>>& shapes,
                   StringView message) {
  std::map<std::string, std::int64_t> known;
  for (const auto& [x, symbols] : shapes) {
    if (x.rank() < 0) continue;
    if (x.rank() != static_cast<int>(symbols.size())) {
      refuse(message,
             cat("A tensor of rank ", symbols.size(), " was expected, got ", shape_of(x), "."));
    }
    for (int axis = 0; axis < x.rank(); ++axis) {
      const std::string& name = symbols[static_cast<std::size_t>(axis)].name;
      const std::int64_t found = x.dim(axis);
      if (found < 0 || name == "?" || name == "-1" || name == "...") continue;
      constexpr std::size_t kMaxDigits = 18;
      const bool is_number = !name.empty() && name.size() <= kMaxDigits &&
                             name.find_first_not_of("0123456789") == std::string::npos;
      const std::int64_t wanted =
          is_number ? std::stoll(name) : known.try_emplace(name, found).first->second;
      if (found != wanted) {
        refuse(message, cat("Specified by another tensor or a number, dimension '", name, "' is ",
                            wanted, ", but ", shape_of(x), " has ", found, " on axis ", axis, "."));
      }
    }
  }
}

bool is_numeric_tensor(const Tensor& x) {
  return is_integer(x.dtype()) || is_inexact(x.dtype()) ||
         (x.dtype() >= DType::kQint8 && x.dtype() <= DType::kQint32);
}

}  // namespace tandem::debugging
