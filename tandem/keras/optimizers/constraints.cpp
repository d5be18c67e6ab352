#include "tandem/keras/constraints.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
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
namespace {

Config with_axis(Config config, const Axes& axis) {
  if (axis.size() == 1) return config.set("axis", axis[0]);
  return config.set("axis", internal::to_config(axis));
}

}  // namespace

MaxNorm::MaxNorm(double max_value, const Axes& axis)
    : Constraint(
          "MaxNorm",
          [max_value, axis](const Tensor& w) {
            const Tensor n = norms(w, axis);
            return w * (clip_by_value(n, 0.0, max_value) / (n + kEpsilon));
          },
          with_axis(Config().set("max_value", max_value), axis)) {}
MinMaxNorm::MinMaxNorm(double min_value, double max_value, double rate, const Axes& axis)
    : Constraint(
          "MinMaxNorm",
          [=](const Tensor& w) {
            const Tensor n = norms(w, axis);
            const Tensor wanted = clip_by_value(n, min_value, max_value) * rate + n * (1 - rate);
            return w * (wanted / (n + kEpsilon));
          },
          with_axis(
              Config().set("min_value", min_value).set("max_value", max_value).set("rate", rate),
              axis)) {}
NonNeg::NonNeg() : Constraint("NonNeg", [](const Tensor& w) { return maximum(w, 0.0); }) {}
UnitNorm::UnitNorm(const Axes& axis)
    : Constraint(
          "UnitNorm", [axis](const Tensor& w) { return w / (norms(w, axis) + kEpsilon); },
          with_axis(Config(), axis)) {}

namespace {

using internal::ArgumentReader;
using Registry = internal::ClassRegistry<Constraint>;

const bool kRegistered[] = {
    Registry::instance().add("MaxNorm",
                             [](ArgumentReader& a) -> Constraint {
                               double max_value = 2;
                               Axes axis{0};
                               a("max_value", max_value);
                               a("axis", axis);
                               return MaxNorm(max_value, axis);
                             }),
    Registry::instance().add("MinMaxNorm",
                             [](ArgumentReader& a) -> Constraint {
                               double min_value = 0, max_value = 1, rate = 1;
                               Axes axis{0};
                               a("min_value", min_value);
                               a("max_value", max_value);
                               a("rate", rate);
                               a("axis", axis);
                               return MinMaxNorm(min_value, max_value, rate, axis);
                             }),
    Registry::instance().add("NonNeg", [](ArgumentReader&) -> Constraint { return NonNeg(); }),
    Registry::instance().add("UnitNorm", [](ArgumentReader& a) -> Constraint {
      Axes axis{0};
      a("axis", axis);
      return UnitNorm(axis);
    })};

}  // namespace
}  // namespace constraints
}  // namespace tandem::keras
