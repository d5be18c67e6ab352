#include "tandem/keras/loss_scale_optimizer.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::optimizers {
namespace {

class LossScaleImpl final : public OptimizerImpl {
 public:
  LossScaleImpl(const Optimizer& inner, const LossScaleOptions& o)
      : OptimizerImpl("LossScaleOptimizer", {.learning_rate = 0.0, .name = o.name}),
        inner_(inner),
        options_(o) {
    if (LossScaleOptimizer::is(inner)) {
      throw InvalidArgumentError(
          "LossScaleOptimizer: the inner optimizer scales the loss already.");
    }
    if (!(o.initial_scale > 0) || !std::isfinite(o.initial_scale)) {
      throw InvalidArgumentError(
          cat("LossScaleOptimizer: initial_scale must be positive and finite, got ",
              o.initial_scale, "."));
    }
    internal::require_positive("LossScaleOptimizer", "dynamic_growth_steps",
                               o.dynamic_growth_steps);
  }

  void make_slots(const std::vector<Variable>& weights) override {
    Variable counter = add_state("step_counter", Tensor(std::int64_t{0}));
    Variable scale = add_state("dynamic_scale", Tensor(options_.initial_scale));
    inner_.build(weights);
    counter_ = std::move(counter);
    scale_ = std::move(scale);
  }
  void update(std::size_t, const Variable&, const Tensor&, const Tensor&) override {
    throw InternalError("LossScaleOptimizer: weights are updated by the inner optimizer.");
  }

  Tensor scale_loss(const Tensor& loss) const override {
    const Tensor scale = built() ? scale_.read_value() : Tensor(options_.initial_scale);
    return loss * cast(scale, loss.dtype());
  }

  void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& weights) override {
    build(weights);
    const Tensor finite = all_finite(gradients);
    const auto done = [] { return Tensor(true); };
    cond(
        finite,
        [&] {
          const Tensor scale = scale_.read_value();
          std::vector<Tensor> unscaled;
          for (const Tensor& g : gradients)
            unscaled.push_back(g.defined() ? g / cast(scale, g.dtype()) : g);
          inner_.apply(unscaled, weights);
          const Tensor counter = counter_.read_value();
          const Tensor grows = equal(counter, Tensor(options_.dynamic_growth_steps - 1));
          counter_.assign(where(grows, zeros_like(counter), counter + std::int64_t{1}));
          scale_.assign(where(grows, scale * 2.0, scale));
          return done();
        },
        [&] {
          counter_.assign(Tensor(std::int64_t{0}));
          scale_.assign(scale_.read_value() * 0.5);
          return done();
        });
  }

  std::vector<Variable> variables() const override {
    std::vector<Variable> all = OptimizerImpl::variables();
    for (const Variable& v : inner_.variables()) all.push_back(v);
    return all;
  }
  std::vector<std::pair<std::string, Variable>> saved_parts() const override {
    auto parts = OptimizerImpl::saved_parts();
    for (const auto& [path, variable] : inner_.impl()->saved_parts())
      parts.emplace_back("inner_optimizer/" + path, variable);
    return parts;
  }
  const Variable& iterations() const override { return inner_.impl()->iterations(); }
  Tensor steps() const override { return inner_.impl()->steps(); }
  void finalize_variable_values() const override { inner_.finalize_variable_values(); }
  const std::vector<Variable>& averages() const override { return inner_.impl()->averages(); }
  Tensor learning_rate() const override { return inner_.impl()->learning_rate(); }
  void set_learning_rate(double value) override { inner_.set_learning_rate(value); }

  const Optimizer& inner() const { return inner_; }
  const Variable& scale() const { return made(scale_); }
  const Variable& counter() const { return made(counter_); }

 private:
  static Tensor all_finite(const std::vector<Tensor>& gradients) {
    std::vector<Tensor> each;
    for (const Tensor& g : gradients) {
      if (g.defined()) each.push_back(reduce_all(math::is_finite(g)));
    }
    // Without any the inner optimizer says what is wrong.
    return each.empty() ? Tensor(true) : reduce_all(stack(each));
  }

  static const Variable& made(const Variable& variable) {
    if (!variable.defined()) {
      throw FailedPreconditionError(
          "This LossScaleOptimizer has no scale yet. Call build, or make a step.");
    }
    return variable;
  }

  Optimizer inner_;
  LossScaleOptions options_;
  Variable counter_;
  Variable scale_;
};

const LossScaleImpl& impl_of(const Optimizer& optimizer) {
  return static_cast<const LossScaleImpl&>(*optimizer.impl());
}

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(const Optimizer& inner, const LossScaleOptions& options)
    : Optimizer(std::make_shared<LossScaleImpl>(inner.fresh(), options)) {}

LossScaleOptimizer LossScaleOptimizer::from(const Optimizer& optimizer) {
  if (!is(optimizer)) {
    throw InvalidArgumentError(cat("This optimizer is ", optimizer.impl()->class_name(),
                                   ", not LossScaleOptimizer. Models of the policy "
                                   "'mixed_float16' get one when they are compiled."));
  }
  return LossScaleOptimizer(optimizer.impl());
}

bool LossScaleOptimizer::is(const Optimizer& optimizer) {
  return dynamic_cast<const LossScaleImpl*>(optimizer.impl().get()) != nullptr;
}

const Optimizer& LossScaleOptimizer::inner_optimizer() const { return impl_of(*this).inner(); }
const Variable& LossScaleOptimizer::dynamic_scale() const { return impl_of(*this).scale(); }
const Variable& LossScaleOptimizer::step_counter() const { return impl_of(*this).counter(); }

}  // namespace tandem::keras::optimizers
