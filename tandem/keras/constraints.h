#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/keras/config.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// What a weight must fulfil after each step: a function from its new value to an allowed one. By
/// name ("max_norm", "min_max_norm", "non_neg", "unit_norm"), by one of the classes in
/// `constraints`, or any callable `Tensor(Tensor)`.
class TANDEM_EXPORT Constraint {
 public:
  using Function = std::function<Tensor(const Tensor& weight)>;
  Constraint() = default;  ///< none
  Constraint(const char* name)
      : Constraint(tandem::internal::name_argument(name, "the name of a constraint")) {}
  Constraint(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&> &&
           !std::is_base_of_v<Constraint, F>) Constraint(F function)
      : Constraint("custom", Function(std::move(function))) {}

  bool defined() const { return function_ != nullptr; }
  Tensor operator()(const Tensor& weight) const { return function_ ? function_(weight) : weight; }
  /// Empty if there is none.
  const Function& function() const { return function_; }
  const std::string& name() const { return name_; }
  /// What it was made with.
  const Config& config() const { return config_; }

 protected:
  Constraint(std::string name, Function function, Config config = {})
      : name_(std::move(name)), function_(std::move(function)), config_(std::move(config)) {}

 private:
  std::string name_;
  Function function_;
  Config config_;
};

namespace constraints {

using keras::Constraint;
using Axes = std::vector<std::int64_t>;
/// Norms along the axes of at most max_value.
class TANDEM_EXPORT MaxNorm : public Constraint {
 public:
  explicit MaxNorm(double max_value = 2, const Axes& axis = {0});
};
/// Norms from min_value to max_value, of which `rate` says how fully they are enforced.
class TANDEM_EXPORT MinMaxNorm : public Constraint {
 public:
  explicit MinMaxNorm(double min_value = 0, double max_value = 1, double rate = 1,
                      const Axes& axis = {0});
};
/// No value below 0.
class TANDEM_EXPORT NonNeg : public Constraint {
 public:
  NonNeg();
};
/// Norms of 1.
class TANDEM_EXPORT UnitNorm : public Constraint {
 public:
  explicit UnitNorm(const Axes& axis = {0});
};
using max_norm = MaxNorm;
using min_max_norm = MinMaxNorm;
using non_neg = NonNeg;
using unit_norm = UnitNorm;
inline Constraint get(const std::string& name) { return Constraint(name); }

}  // namespace constraints
}  // namespace tandem::keras
