#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/optimizer.h"
#include "tandem/ops/variable.h"

namespace tandem::keras::optimizers {

struct LossScaleOptions {
  double initial_scale = 32768;  ///< better too large: it falls fast and rises slowly
  std::int64_t dynamic_growth_steps = 2000;
  String name = "loss_scale_optimizer";
};

/// Keeps small gradients from becoming 0 in float16: the loss is multiplied by a scale, gradients
/// are divided by it before the optimizer within sees them. A step whose gradients are not all
/// finite is skipped and halves the scale; `dynamic_growth_steps` steps without one double it.
///
/// Model::compile puts it around the optimizer when the model's policy is "mixed_float16". By hand:
///
///     optimizers::LossScaleOptimizer optimizer("adam");
///     td::GradientTape tape;
///     td::Tensor scaled = optimizer.scale_loss(loss_of(batch));
///     optimizer.apply(tape.gradient(scaled, weights), weights);
///
/// Learning rate, iterations and clipping are the inner optimizer's.
class TANDEM_EXPORT LossScaleOptimizer : public Optimizer {
 public:
  explicit LossScaleOptimizer(const Optimizer& inner, const LossScaleOptions& options = {});
  /// The one that `optimizer` is, such as a compiled model's; throws InvalidArgumentError if it is
  /// another kind.
  static LossScaleOptimizer from(const Optimizer& optimizer);
  static bool is(const Optimizer& optimizer);

  const Optimizer& inner_optimizer() const;
  /// The scale of the next step, and how many good steps there were since it changed. float32 and
  /// int64 scalars; FailedPreconditionError before the first step or `build`.
  const Variable& dynamic_scale() const;
  const Variable& step_counter() const;

 private:
  explicit LossScaleOptimizer(std::shared_ptr<OptimizerImpl> impl) : Optimizer(std::move(impl)) {}
};

}  // namespace tandem::keras::optimizers
