#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/keras/config.h"
#include "tandem/keras/reduction.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// What a Loss handle refers to.
class TANDEM_EXPORT LossImpl {
 public:
  LossImpl(std::string name, Reduction reduction) : name_(std::move(name)), reduction_(reduction) {}
  virtual ~LossImpl();

  /// One value for each example (or for each of its parts).
  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) const = 0;
  /// Bool, of the values' shape: which of them count. Undefined: all.
  virtual Tensor mask(const Tensor& y_true, const Tensor& y_pred) const;

  const std::string& name() const { return name_; }
  Reduction reduction() const { return reduction_; }

 private:
  std::string name_;
  Reduction reduction_;
};

/// How far predictions are from the truth: what training makes small.
///
/// By Keras' name ("mse", "sparse_categorical_crossentropy", …), by one of the classes in `losses`,
/// or any callable `Tensor(y_true, y_pred)` that gives one value for each example. A handle.
///
///     td::keras::Loss loss = "mse";
///     td::Tensor value = loss(y_true, y_pred);     // a scalar
class TANDEM_EXPORT Loss {
 public:
  /// None.
  Loss() = default;
  Loss(const char* name) : Loss(tandem::internal::name_argument(name, "the name of a loss")) {}
  Loss(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&> &&
           !std::is_base_of_v<Loss, F>) Loss(F function)
      : Loss(from_function("loss", std::move(function))) {}
  explicit Loss(std::shared_ptr<const LossImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  const std::string& name() const { return impl_->name(); }

  /// A scalar, or one value for each example if the reduction is kNone. `sample_weight` has one
  /// number for each example (or for each of its parts).
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const;

  using Function = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;
  static Loss from_function(std::string name, Function function,
                            Reduction reduction = Reduction::kSumOverBatchSize);

  const LossImpl& impl() const { return *impl_; }
  /// Its class in Keras and what it was made with; without a class for a function of one's own.
  const ConfigObject& made_of() const { return made_of_; }

 protected:
  ConfigObject made_of_ = {};

 private:
  std::shared_ptr<const LossImpl> impl_;
};

}  // namespace tandem::keras
