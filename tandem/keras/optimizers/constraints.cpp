#include "tandem/keras/constraints.h"

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor norms(const Tensor& w, const constraints::Axes& axis) {
  return sqrt(reduce_sum(square(w), axis, true));
}

}  // namespace

Constraint::Constraint(const std::string& name) {
  if (name == "max_norm" || name == "MaxNorm") {
    *this = constraints::MaxNorm();
  } else if (name == "min_max_norm" || name == "MinMaxNorm") {
    *this = constraints::MinMaxNorm();
  } else if (name == "non_neg" || name == "NonNeg") {
    *this = constraints::NonNeg();
  } else if (name == "unit_norm" || name == "UnitNorm") {
    *this = constraints::UnitNorm();
  } else {
    throw InvalidArgumentError(cat("Unknown constraint '", name,
                                   "'. There are: max_norm, min_max_norm, non_neg, unit_norm."));
  }
}

namespace constraints {

MaxNorm::MaxNorm(double max_value, const Axes& axis)
    : Constraint([max_value, axis](const Tensor& w) {
        const Tensor n = norms(w, axis);
        return w * (clip_by_value(n, 0.0, max_value) / (n + kEpsilon));
      }) {}
MinMaxNorm::MinMaxNorm(double min_value, double max_value, double rate, const Axes& axis)
    : Constraint([=](const Tensor& w) {
        const Tensor n = norms(w, axis);
        const Tensor wanted = clip_by_value(n, min_value, max_value) * rate + n * (1 - rate);
        return w * (wanted / (n + kEpsilon));
      }) {}
NonNeg::NonNeg() : Constraint([](const Tensor& w) { return maximum(w, 0.0); }) {}
UnitNorm::UnitNorm(const Axes& axis)
    : Constraint([axis](const Tensor& w) { return w / (norms(w, axis) + kEpsilon); }) {}

}  // namespace constraints
}  // namespace tandem::keras
