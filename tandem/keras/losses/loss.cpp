#include "tandem/keras/loss.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/precision.h"
#include "tandem/keras/internal/weighting.h"
#include "tandem/ops/comparison_ops.h"

namespace tandem::keras {
namespace {

class FunctionLoss final : public LossImpl {
 public:
  FunctionLoss(std::string name, Loss::Function function, Reduction reduction)
      : LossImpl(std::move(name), reduction), function_(std::move(function)) {}
  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override {
    return function_(y_true, y_pred);
  }

 private:
  Loss::Function function_;
};

}  // namespace

LossImpl::~LossImpl() = default;
Tensor LossImpl::mask(const Tensor&, const Tensor&) const { return {}; }

Loss Loss::from_function(std::string name, Function function, Reduction reduction) {
  return Loss(std::make_shared<FunctionLoss>(std::move(name), std::move(function), reduction));
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        const Tensor& sample_weight) const {
  if (!impl_) throw FailedPreconditionError("This Loss is none. Assign one, for example \"mse\".");
  if (!y_true.defined() || !y_pred.defined()) {
    throw InvalidArgumentError(cat("Loss '", name(), "' was called with an undefined tensor."));
  }
  const Tensor predicted = internal::predictions_in_full_precision(y_pred);
  Tensor mask = impl_->mask(y_true, predicted);
  if (const Tensor steps = internal::find_mask(predicted); steps.defined()) {
    mask = mask.defined() ? logical_and(steps, mask) : steps;
  }
  return internal::reduce_values(impl_->call(y_true, predicted), sample_weight, mask,
                                 impl_->reduction());
}

}  // namespace tandem::keras
