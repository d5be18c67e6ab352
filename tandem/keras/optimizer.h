#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/keras/config.h"
#include "tandem/keras/schedules.h"
#include "tandem/ops/variable.h"
#include "tandem/ops/zip.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// What all optimizers have. At most one of the three ways of clipping may be given.
struct OptimizerSettings {
  LearningRate learning_rate = 0.001;
  std::optional<double> weight_decay = std::nullopt;     ///< shrinks weights by this share · rate
  std::optional<double> clipnorm = std::nullopt;         ///< largest norm of each gradient
  std::optional<double> clipvalue = std::nullopt;        ///< largest absolute value in a gradient
  std::optional<double> global_clipnorm = std::nullopt;  ///< largest norm of all gradients together
  /// Keeps a moving average of each weight: momentum · average + (1 − momentum) · weight. fit puts
  /// the averages into the weights at its end; a loop of your own calls finalize_variable_values.
  bool use_ema = false;
  double ema_momentum = 0.99;
  /// Puts the averages into the weights after every so many steps.
  std::optional<std::int64_t> ema_overwrite_frequency = std::nullopt;
  /// The loss is multiplied by it before it is differentiated, gradients are divided by it.
  std::optional<double> loss_scale_factor = std::nullopt;
  /// Weights change in every Nth step (N ≥ 2), by the mean of the gradients since the last change.
  std::optional<std::int64_t> gradient_accumulation_steps = std::nullopt;
  String name = {};
};

/// What an Optimizer handle refers to. Derive from it to write an optimizer: `make_slots` makes the
/// variables that go with each weight, `update` changes one weight.
class TANDEM_EXPORT OptimizerImpl {
 public:
  OptimizerImpl(std::string class_name, OptimizerSettings settings);
  virtual ~OptimizerImpl();
  OptimizerImpl(const OptimizerImpl&) = delete;
  OptimizerImpl& operator=(const OptimizerImpl&) = delete;

  /// Where it throws (memory may run out) what it added is taken back, and the next `build` calls
  /// it again: it assigns members rather than appends to them.
  virtual void make_slots(const std::vector<Variable>& weights) = 0;
  /// Before the updates of a step; `step` is its number as a float scalar, the first being 1.
  virtual void begin_step(const Tensor& step);
  virtual void update(std::size_t index, const Variable& weight, const Tensor& gradient,
                      const Tensor& learning_rate) = 0;

  /// All or nothing: after a failure it may be called again.
  void build(const std::vector<Variable>& weights);
  bool built() const { return built_; }
  /// Runs `action` once, when it has been built; never, if it is built already.
  void when_built(std::function<void()> action);
  const OptimizerSettings& settings() const { return settings_; }
  const std::string& class_name() const { return class_name_; }
  /// What it was made with, in Keras' names; with the learning rate of now, unless that follows a
  /// schedule.
  virtual Config config() const;
  void set_arguments(Config arguments) { arguments_ = std::move(arguments); }

  // ---- What an optimizer around another one overrides. ----
  virtual void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& weights);
  virtual Tensor scale_loss(const Tensor& loss) const;
  /// The number of changes of the weights so far: int64, a scalar.
  virtual Tensor steps() const;
  virtual void finalize_variable_values() const;
  virtual const std::vector<Variable>& averages() const { return averages_; }
  virtual std::vector<Variable> variables() const { return variables_; }
  /// What a checkpoint holds, by the names of Keras' attributes: "_iterations", "_variables/2".
  virtual std::vector<std::pair<std::string, Variable>> saved_parts() const;
  /// The weights that it was built for.
  const std::vector<Variable>& weights() const { return weights_; }
  virtual const Variable& iterations() const { return iterations_; }
  virtual Tensor learning_rate() const;
  virtual void set_learning_rate(double value);

 protected:
  /// A variable like a weight and on its device, filled with `initial`.
  Variable add_slot(const Variable& like, const std::string& name, double initial = 0);
  /// … one for each weight.
  std::vector<Variable> add_slots(const std::vector<Variable>& weights, const std::string& name,
                                  double initial = 0);
  /// … two for each weight, in Keras' order: both of the first weight, both of the second, …
  std::pair<std::vector<Variable>, std::vector<Variable>> add_slot_pairs(
      const std::vector<Variable>& weights, const std::string& first, const std::string& second);
  /// `attribute` is Keras' name of a variable that Keras does not list among the optimizer's.
  Variable add_scalar(const std::string& name, double initial, const std::string& attribute = "");
  /// … of any dtype, which Keras lists and has as an attribute too, as `name`.
  Variable add_state(const std::string& name, const Tensor& initial);

 private:
  void change(const std::vector<Tensor>& gradients, const std::vector<std::size_t>& indices);
  void accumulate(const std::vector<Tensor>& gradients, const std::vector<std::size_t>& indices);
  void average();
  std::vector<Tensor> clip(std::vector<Tensor> gradients) const;
  std::size_t index_of(const Variable& weight) const;

  std::string class_name_;
  OptimizerSettings settings_;
  Config arguments_;
  Variable iterations_;
  Variable learning_rate_;  // undefined with a schedule
  std::vector<Variable> weights_;
  std::vector<Variable> variables_;
  std::vector<Variable> averages_;                            // of the weights, with use_ema
  std::vector<Variable> accumulators_;                        // of the gradients
  std::vector<std::pair<std::string, Variable>> attributes_;  // … which are not in Keras' list
  bool built_ = false;
  std::vector<std::function<void()>> when_built_;
};

/// `optimizer.learning_rate`: the rate for the next step. Read as a number, set by assignment.
///
///     optimizer.learning_rate = optimizer.learning_rate * 0.5;
class TANDEM_EXPORT LearningRateProperty {
 public:
  LearningRateProperty(const LearningRateProperty&) = default;
  operator double() const { return get(); }
  double operator()() const { return get(); }
  /// Throws FailedPreconditionError if the rate follows a schedule, InvalidArgumentError for a
  /// number that is none.
  const LearningRateProperty& operator=(double value) const {
    assign(value);
    return *this;
  }
  LearningRateProperty& operator=(const LearningRateProperty& other) {
    assign(other.get());
    return *this;
  }
  void assign(double value) const;

 private:
  friend class Optimizer;
  explicit LearningRateProperty(std::shared_ptr<OptimizerImpl> impl) : impl_(std::move(impl)) {}
  double get() const;

  std::shared_ptr<OptimizerImpl> impl_;
};

/// Changes weights so that a loss gets smaller. By Keras' name ("adam", "sgd", …) or by one of the
/// classes in `optimizers`. A handle; it belongs to the weights that it was first used with.
///
///     td::keras::optimizers::Adam adam({.learning_rate = 0.01});
///     adam.apply_gradients(td::zip(gradients, variables));
class TANDEM_EXPORT Optimizer {
 public:
  Optimizer(const char* name)
      : Optimizer(tandem::internal::name_argument(name, "the name of an optimizer")) {}
  Optimizer(const std::string& name);
  explicit Optimizer(std::shared_ptr<OptimizerImpl> impl)
      : learning_rate(impl), impl_(std::move(impl)) {}
  // Copies only: there is none that refers to nothing.
  Optimizer(const Optimizer&) = default;
  // Another optimizer, whose `learning_rate` is its own.
  Optimizer& operator=(const Optimizer& other) {
    learning_rate.impl_ = impl_ = other.impl_;
    name_ = other.name_;
    return *this;
  }

  /// One step: clips, decays, updates. Undefined gradients are left out (with a warning the first
  /// time); InvalidArgumentError if there is no other. May be traced, once `build` has been called.
  void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables) const;
  /// Keras' form of `apply`: pairs of a gradient and its variable, as td::zip makes them.
  void apply_gradients(const std::vector<std::pair<Tensor, Variable>>& grads_and_vars) const {
    std::vector<Tensor> gradients;
    std::vector<Variable> variables;
    for (const auto& [gradient, variable] : grads_and_vars) {
      gradients.push_back(gradient);
      variables.push_back(variable);
    }
    apply(gradients, variables);
  }
  void apply_gradients(const std::vector<Tensor>& gradients,
                       const std::vector<Variable>& variables) const {
    apply(gradients, variables);
  }
  /// Makes the variables that go with these weights; done by the first `apply` outside of traces.
  void build(const std::vector<Variable>& variables) const;

  /// What to differentiate instead of the loss: the loss itself but for a LossScaleOptimizer, whose
  /// `apply` then takes the larger gradients.
  Tensor scale_loss(const Tensor& loss) const { return impl_->scale_loss(loss); }

  /// "adam", or the name among its options.
  const std::string& name() const { return impl_->settings().name; }
  LearningRateProperty learning_rate;
  /// `learning_rate = value`
  void set_learning_rate(double value) const { learning_rate = value; }
  /// With use_ema puts the moving averages into the weights, for the end of training.
  void finalize_variable_values() const { impl_->finalize_variable_values(); }
  /// How many steps there were: changes of the weights, where gradients accumulate.
  std::int64_t iterations() const;
  /// iteration, learning_rate (unless it follows a schedule), and what goes with the weights.
  std::vector<Variable> variables() const;

  // ---- For models. ----
  const std::shared_ptr<OptimizerImpl>& impl() const { return impl_; }
  /// A new one if this was made from a name, so that options used twice do not share it; else
  /// itself.
  Optimizer fresh() const { return name_.empty() ? *this : Optimizer(name_); }

 private:
  std::shared_ptr<OptimizerImpl> impl_;
  std::string name_;  // if made from a name
};

}  // namespace tandem::keras
