#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/keras/config.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// A penalty on a weight that is added to the loss while training. None by default.
///
/// By name ("l1", "l2" with 0.01, "l1_l2"), by one of the classes in `regularizers`, or any
/// callable `Tensor(Tensor)`.
class TANDEM_EXPORT Regularizer {
 public:
  using Function = std::function<Tensor(const Tensor& weight)>;

  Regularizer() = default;
  Regularizer(const char* name)
      : Regularizer(tandem::internal::name_argument(name, "the name of a regularizer")) {}
  Regularizer(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&> &&
           !std::is_base_of_v<Regularizer, F>) Regularizer(F function)
      : Regularizer("custom", Function(std::move(function))) {}

  bool defined() const { return function_ != nullptr; }
  /// A scalar.
  Tensor operator()(const Tensor& weight) const { return function_(weight); }
  const std::string& name() const { return name_; }
  /// What it was made with.
  const Config& config() const { return config_; }

 protected:
  Regularizer(std::string name, Function function, Config config = {})
      : name_(std::move(name)), function_(std::move(function)), config_(std::move(config)) {}

 private:
  std::string name_;
  Function function_;
  Config config_;
};

namespace regularizers {

/// l1 · Σ|w|
struct TANDEM_EXPORT L1 : Regularizer {
  explicit L1(double l1 = 0.01);
};
/// l2 · Σw²
struct TANDEM_EXPORT L2 : Regularizer {
  explicit L2(double l2 = 0.01);
};
/// Both.
struct TANDEM_EXPORT L1L2 : Regularizer {
  explicit L1L2(double l1 = 0.0, double l2 = 0.0);
};

}  // namespace regularizers
}  // namespace tandem::keras
