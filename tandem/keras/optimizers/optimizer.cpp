#include "tandem/keras/optimizer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/names.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/colocation_scope.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras {
namespace {

void check(const std::string& who, const OptimizerSettings& s) {
  const int ways = s.clipnorm.has_value() + s.clipvalue.has_value() + s.global_clipnorm.has_value();
  if (ways > 1) {
    throw InvalidArgumentError(
        cat(who, ": Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set."));
  }
  for (const auto& limit : {s.clipnorm, s.clipvalue, s.global_clipnorm}) {
    if (limit && !(*limit > 0)) {
      throw InvalidArgumentError(
          cat(who, ": a limit for gradients must be positive, got ", *limit, "."));
    }
  }
  if (s.gradient_accumulation_steps && *s.gradient_accumulation_steps < 2) {
    throw InvalidArgumentError(
        cat(who, ": `gradient_accumulation_steps` must be an integer >= 2. Received: ",
            "gradient_accumulation_steps=", *s.gradient_accumulation_steps, "."));
  }
  if (s.use_ema && !(s.ema_momentum >= 0 && s.ema_momentum <= 1)) {
    throw InvalidArgumentError(cat(who, ": `ema_momentum` must be in the range [0, 1]. Received: ",
                                   "ema_momentum=", s.ema_momentum, "."));
  }
  if (s.use_ema && s.ema_overwrite_frequency && *s.ema_overwrite_frequency < 1) {
    throw InvalidArgumentError(
        cat(who, ": `ema_overwrite_frequency` must be an integer >= 1. Received: ",
            "ema_overwrite_frequency=", *s.ema_overwrite_frequency, "."));
  }
  if (!s.learning_rate.schedule() &&
      !(s.learning_rate.value() >= 0 && std::isfinite(s.learning_rate.value()))) {
    throw InvalidArgumentError(cat(who, ": the learning rate must be finite and not negative, got ",
                                   s.learning_rate.value(), "."));
  }
}

}  // namespace

OptimizerImpl::OptimizerImpl(std::string class_name, OptimizerSettings settings)
    : class_name_(std::move(class_name)), settings_(std::move(settings)) {
  check(class_name_, settings_);
  if (settings_.name.empty()) settings_.name = internal::snake_case(class_name_);
  TraceScope eager(nullptr);
  iterations_ = Variable(Tensor(std::int64_t{0}),
                         {.trainable = false, .name = settings_.name + "/iteration"});
  variables_.push_back(iterations_);
  if (!settings_.learning_rate.schedule()) {
    learning_rate_ = add_scalar("learning_rate", settings_.learning_rate.value());
  }
}
OptimizerImpl::~OptimizerImpl() = default;

Config OptimizerImpl::config() const {
  Config config = arguments_;
  if (!settings_.name.empty()) config.set("name", settings_.name);
  if (learning_rate_.defined())
    config.set("learning_rate", double{learning_rate_.read_value().item<float>()});
  return config;
}

void OptimizerImpl::begin_step(const Tensor&) {}

Variable OptimizerImpl::add_slot(const Variable& like, const std::string& name, double initial) {
  const ColocationScope near(like.handle());
  Tensor value = fill(like.shape().to_shape(), constant(Tensor(initial), like.dtype()));
  std::string path = like.name();
  std::replace(path.begin(), path.end(), '/', '_');
  variables_.emplace_back(
      std::move(value),
      VariableOptions{.trainable = false, .name = cat(settings_.name, "/", path, "_", name)});
  return variables_.back();
}

std::vector<Variable> OptimizerImpl::add_slots(const std::vector<Variable>& weights,
                                               const std::string& name, double initial) {
  std::vector<Variable> slots;
  for (const Variable& weight : weights) slots.push_back(add_slot(weight, name, initial));
  return slots;
}

std::pair<std::vector<Variable>, std::vector<Variable>> OptimizerImpl::add_slot_pairs(
    const std::vector<Variable>& weights, const std::string& first, const std::string& second) {
  std::pair<std::vector<Variable>, std::vector<Variable>> slots;
  for (const Variable& weight : weights) {
    slots.first.push_back(add_slot(weight, first));
    slots.second.push_back(add_slot(weight, second));
  }
  return slots;
}

Variable OptimizerImpl::add_scalar(const std::string& name, double initial,
                                   const std::string& attribute) {
  variables_.emplace_back(Tensor(initial),
                          VariableOptions{.trainable = false, .name = settings_.name + "/" + name});
  if (!attribute.empty()) attributes_.emplace_back(attribute, variables_.back());
  return variables_.back();
}

Variable OptimizerImpl::add_state(const std::string& name, const Tensor& initial) {
  variables_.emplace_back(initial,
                          VariableOptions{.trainable = false, .name = settings_.name + "/" + name});
  attributes_.emplace_back(name, variables_.back());
  return variables_.back();
}

Tensor OptimizerImpl::scale_loss(const Tensor& loss) const {
  return settings_.loss_scale_factor ? loss * *settings_.loss_scale_factor : loss;
}

std::vector<std::pair<std::string, Variable>> OptimizerImpl::saved_parts() const {
  std::vector<std::pair<std::string, Variable>> parts{{"_iterations", iterations_}};
  if (learning_rate_.defined()) parts.emplace_back("_learning_rate", learning_rate_);
  parts.insert(parts.end(), attributes_.begin(), attributes_.end());
  int listed = 0, trained = 0;
  for (const Variable& variable : variables_) {
    const bool apart = std::any_of(attributes_.begin(), attributes_.end(), [&](const auto& other) {
      return other.second.is_same(variable);
    });
    if (!apart) parts.emplace_back(cat("_variables/", listed++), variable);
  }
  for (const Variable& weight : weights_)
    parts.emplace_back(cat("_trainable_variables/", trained++), weight);
  return parts;
}

void OptimizerImpl::build(const std::vector<Variable>& weights) {
  if (built_) {
    for (const Variable& weight : weights) index_of(weight);
    return;
  }
  TraceScope eager(nullptr);
  StopRecording quiet;
  const std::size_t variables = variables_.size(), attributes = attributes_.size();
  try {
    if (settings_.use_ema) averages_ = add_slots(weights, "average");
    if (settings_.gradient_accumulation_steps)
      accumulators_ = add_slots(weights, "gradient_accumulator");
    make_slots(weights);
    weights_ = weights;
  } catch (...) {
    variables_.resize(variables);
    attributes_.resize(attributes);
    throw;
  }
  built_ = true;
  for (const auto& action : std::exchange(when_built_, {})) action();
}

void OptimizerImpl::when_built(std::function<void()> action) {
  if (!built_) when_built_.push_back(std::move(action));
}

std::size_t OptimizerImpl::index_of(const Variable& weight) const {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].is_same(weight)) return i;
  }
  throw InvalidArgumentError(
      cat("Unknown variable: '", weight.name(), "'. This optimizer (", class_name_,
          ") can only be called for the variables it was originally built with. When working with "
          "a new set of variables, make a new optimizer."));
}

std::vector<Tensor> OptimizerImpl::clip(std::vector<Tensor> gradients) const {
  for (Tensor& g : gradients) {
    if (settings_.clipnorm) g = clip_by_norm(g, *settings_.clipnorm);
    if (settings_.clipvalue) g = clip_by_value(g, -*settings_.clipvalue, *settings_.clipvalue);
  }
  if (settings_.global_clipnorm)
    return clip_by_global_norm(gradients, *settings_.global_clipnorm).first;
  return gradients;
}

Tensor OptimizerImpl::learning_rate() const {
  if (!settings_.learning_rate.schedule()) return learning_rate_.read_value();
  return (*settings_.learning_rate.schedule())(cast(iterations_, float32));
}

void OptimizerImpl::set_learning_rate(double value) {
  if (settings_.learning_rate.schedule()) {
    throw FailedPreconditionError(cat("The learning rate of this ", class_name_,
                                      " follows a schedule, so it cannot be "
                                      "set. Make the optimizer with a number as learning_rate."));
  }
  if (!std::isfinite(value) || value < 0) {
    throw InvalidArgumentError(
        cat("The learning rate must be finite and not negative, got ", value, "."));
  }
  learning_rate_.assign(Tensor(value));
}

void OptimizerImpl::apply(const std::vector<Tensor>& gradients,
                          const std::vector<Variable>& weights) {
  if (gradients.size() != weights.size()) {
    throw InvalidArgumentError(
        cat("There are ", gradients.size(), " gradients for ", weights.size(), " variables."));
  }
  build(weights);
  std::vector<Tensor> given;
  std::vector<std::size_t> indices;
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t index = index_of(weights[i]);
    if (gradients[i].defined()) {
      given.push_back(gradients[i]);
      indices.push_back(index);
    } else {
      missing.push_back(weights[i].name());
    }
  }
  if (given.empty()) {
    throw InvalidArgumentError(
        "No gradients provided for any variable. The loss depends on none of the weights that can "
        "be trained: check that layers are trainable and that the loss uses the outputs.");
  }
  if (!missing.empty()) {
    std::cerr << "warning: Gradients do not exist for variables " << internal::join(missing)
              << " when minimizing the loss.\n";
  }
  if (settings_.loss_scale_factor)
    for (Tensor& g : given) g = g / *settings_.loss_scale_factor;
  if (settings_.gradient_accumulation_steps) {
    accumulate(given, indices);
  } else {
    change(given, indices);
  }
  if (settings_.use_ema) average();
  for (const std::size_t i : indices) {
    const Variable& w = weights_[i];
    if (w.constraint()) w.assign(w.constraint()(w.read_value()));
  }
  iterations_.assign_add(Tensor(std::int64_t{1}));
}

// Changes the weights by these gradients.
void OptimizerImpl::change(const std::vector<Tensor>& gradients,
                           const std::vector<std::size_t>& indices) {
  const std::vector<Tensor> clipped = clip(gradients);
  const Tensor rate = learning_rate();
  if (settings_.weight_decay) {
    for (const std::size_t i : indices) {
      const Variable& w = weights_[i];
      w.assign_sub(w.read_value() * cast(rate * *settings_.weight_decay, w.dtype()));
    }
  }
  begin_step(cast(steps() + std::int64_t{1}, float32));
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    const Variable& w = weights_[indices[i]];
    update(indices[i], w, clipped[i], cast(rate, w.dtype()));
  }
}

void OptimizerImpl::accumulate(const std::vector<Tensor>& gradients,
                               const std::vector<std::size_t>& indices) {
  const std::int64_t every = *settings_.gradient_accumulation_steps;
  const Tensor now = iterations_.read_value() + std::int64_t{1};
  const auto done = [] { return Tensor(true); };
  cond(
      equal(floormod(now, Tensor(every)), Tensor(std::int64_t{0})),
      [&] {
        std::vector<Tensor> means;
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          const Tensor sum = gradients[i] + accumulators_[indices[i]].read_value();
          means.push_back(sum / static_cast<double>(every));
        }
        change(means, indices);
        for (const Variable& sum : accumulators_) sum.assign(zeros_like(sum.read_value()));
        return done();
      },
      [&] {
        for (std::size_t i = 0; i < gradients.size(); ++i)
          accumulators_[indices[i]].assign_add(gradients[i]);
        return done();
      });
}

// In the first step the average is the weight.
void OptimizerImpl::average() {
  const Tensor step = steps();
  const Tensor later = cast(not_equal(step, Tensor(std::int64_t{0})), float32);
  const Tensor momentum = later * settings_.ema_momentum;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Variable& w = weights_[i];
    const Tensor m = cast(momentum, w.dtype());
    averages_[i].assign(m * averages_[i].read_value() + (1.0 - m) * w.read_value());
  }
  if (!settings_.ema_overwrite_frequency) return;
  const auto done = [] { return Tensor(true); };
  cond(
      equal(floormod(step + std::int64_t{1}, Tensor(*settings_.ema_overwrite_frequency)),
            Tensor(std::int64_t{0})),
      [&] {
        finalize_variable_values();
        return done();
      },
      done);
}

void OptimizerImpl::finalize_variable_values() const {
  for (std::size_t i = 0; i < averages_.size(); ++i) weights_[i].assign(averages_[i].read_value());
}

Tensor OptimizerImpl::steps() const {
  const Tensor calls = iterations_.read_value();
  if (!settings_.gradient_accumulation_steps) return calls;
  return floordiv(calls, Tensor(*settings_.gradient_accumulation_steps));
}

void Optimizer::apply(const std::vector<Tensor>& gradients,
                      const std::vector<Variable>& variables) const {
  impl_->apply(gradients, variables);
}
void Optimizer::build(const std::vector<Variable>& variables) const { impl_->build(variables); }
double LearningRateProperty::get() const {
  return static_cast<double>(impl_->learning_rate().item<float>());
}
void LearningRateProperty::assign(double value) const { impl_->set_learning_rate(value); }
std::int64_t Optimizer::iterations() const { return impl_->steps().item<std::int64_t>(); }
std::vector<Variable> Optimizer::variables() const { return impl_->variables(); }

}  // namespace tandem::keras
