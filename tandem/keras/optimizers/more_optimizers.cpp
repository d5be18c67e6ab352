#include "tandem/keras/more_optimizers.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/optimizer_settings.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::optimizers {
namespace {

class LionImpl final : public OptimizerImpl {
 public:
  explicit LionImpl(const LionOptions& o) : OptimizerImpl("Lion", settings_of(o)), options_(o) {
    internal::require_range("Lion", "beta_1", o.beta_1, 1e-30, 1);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    momentums_ = add_slots(weights, "momentum");
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const Tensor m = momentums_[i].read_value();
    w.assign_sub(rate * sign(m * options_.beta_1 + g * (1 - options_.beta_1)));
    momentums_[i].assign(m * options_.beta_2 + g * (1 - options_.beta_2));
  }

 private:
  LionOptions options_;
  std::vector<Variable> momentums_;
};

class FtrlImpl final : public OptimizerImpl {
 public:
  explicit FtrlImpl(const FtrlOptions& o) : OptimizerImpl("Ftrl", settings_of(o)), options_(o) {
    internal::require_range("Ftrl", "initial_accumulator_value", o.initial_accumulator_value, 0,
                            1e30);
    internal::require_range("Ftrl", "learning_rate_power", o.learning_rate_power, -1e30, 0);
    internal::require_range("Ftrl", "l1_regularization_strength", o.l1_regularization_strength, 0,
                            1e30);
    internal::require_range("Ftrl", "l2_regularization_strength", o.l2_regularization_strength, 0,
                            1e30);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    std::vector<Variable> sums, linears;
    for (const Variable& w : weights) {
      sums.push_back(add_slot(w, "accumulator", options_.initial_accumulator_value));
      linears.push_back(add_slot(w, "linear"));
    }
    sums_ = std::move(sums);
    linears_ = std::move(linears);
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const double power = -options_.learning_rate_power;
    const Tensor l2 = options_.l2_regularization_strength + options_.beta / (2.0 * rate);
    const Tensor value = w.read_value(), sum = sums_[i].read_value();
    const Tensor used = g + value * (2 * options_.l2_shrinkage_regularization_strength);
    const Tensor new_sum = sum + square(g);
    const Tensor linear =
        linears_[i].read_value() + used - (pow(new_sum, power) - pow(sum, power)) / rate * value;
    linears_[i].assign(linear);
    const Tensor quadratic = pow(new_sum, power) / rate + 2.0 * l2;
    const double l1 = options_.l1_regularization_strength;
    w.assign((clip_by_value(linear, -l1, l1) - linear) / quadratic);
    sums_[i].assign(new_sum);
  }

 private:
  FtrlOptions options_;
  std::vector<Variable> sums_;
  std::vector<Variable> linears_;
};

class LambImpl final : public OptimizerImpl {
 public:
  explicit LambImpl(const LambOptions& o) : OptimizerImpl("Lamb", settings_of(o)), options_(o) {
    internal::require_range("Lamb", "beta_1", o.beta_1, 0, 1);
    internal::require_range("Lamb", "beta_2", o.beta_2, 0, 1);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    std::tie(m_, v_) = add_slot_pairs(weights, "momentum", "velocity");
  }
  void begin_step(const Tensor& step) override { step_ = step; }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const Tensor m0 = m_[i].read_value(), v0 = v_[i].read_value();
    const Tensor m = m0 + (g - m0) * (1 - options_.beta_1);
    const Tensor v = v0 + (square(g) - v0) * (1 - options_.beta_2);
    m_[i].assign(m);
    v_[i].assign(v);
    const Tensor step = cast(step_, w.dtype());
    const Tensor update = m / (1 - pow(options_.beta_1, step)) /
                          (sqrt(v / (1 - pow(options_.beta_2, step))) + options_.epsilon);
    const Tensor size = sqrt(reduce_sum(square(w.read_value())));
    const Tensor length = sqrt(reduce_sum(square(update)));
    const Tensor both = logical_and(size > 0.0, length > 0.0);
    const Tensor ratio = where(both, size / where(both, length, 1.0), 1.0);
    w.assign_sub(ratio * rate * update);
  }

 private:
  LambOptions options_;
  std::vector<Variable> m_;
  std::vector<Variable> v_;
  Tensor step_;
};

class AdafactorImpl final : public OptimizerImpl {
 public:
  explicit AdafactorImpl(const AdafactorOptions& o)
      : OptimizerImpl("Adafactor", settings_of(o)), options_(o) {}
  void make_slots(const std::vector<Variable>& weights) override {
    std::vector<Variable> rows, columns, velocities;
    for (const Variable& w : weights) {
      Shape row, column;
      const Shape shape = w.shape().to_shape();
      const bool factored = shape.rank() >= 2;
      for (int axis = 0; factored && axis < shape.rank(); ++axis) {
        if (axis != shape.rank() - 1) row.add_dim(shape[axis]);
        if (axis != shape.rank() - 2) column.add_dim(shape[axis]);
      }
      rows.push_back(factored ? add_state(w.name() + "/row", zeros(row, w.dtype())) : Variable());
      columns.push_back(factored ? add_state(w.name() + "/column", zeros(column, w.dtype()))
                                 : Variable());
      velocities.push_back(add_slot(w, "velocity"));
    }
    rows_ = std::move(rows);
    columns_ = std::move(columns);
    velocities_ = std::move(velocities);
  }
  void begin_step(const Tensor& step) override { step_ = step; }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& given) override {
    const Tensor step = cast(step_, w.dtype());
    const Tensor most = 1.0 / sqrt(step);
    Tensor rate = given;
    if (options_.relative_step && !settings().learning_rate.schedule()) rate = minimum(rate, most);
    const Tensor alpha = maximum(rms(w.read_value()), options_.epsilon_2) * minimum(rate, most);
    const Tensor squares = square(g) + options_.epsilon_1;
    const Tensor kept = 1.0 - pow(step, options_.beta_2_decay);
    const auto mixed = [&](const Variable& old, const Tensor& now) {
      return kept * old.read_value() + (1.0 - kept) * now;
    };
    Tensor velocity;
    if (rows_[i].defined()) {
      const Tensor r = mixed(rows_[i], reduce_mean(squares, -1));
      const Tensor c = mixed(columns_[i], reduce_mean(squares, -2));
      rows_[i].assign(r);
      columns_[i].assign(c);
      velocity = expand_dims(r / reduce_mean(r, -1, true), -1) * expand_dims(c, -2);
    } else {
      velocity = mixed(velocities_[i], squares);
    }
    velocities_[i].assign(velocity);
    const Tensor step_of = g / sqrt(velocity);
    w.assign_sub(alpha * (step_of / maximum(rms(step_of) / options_.clip_threshold, 1.0)));
  }

 private:
  static Tensor rms(const Tensor& x) { return sqrt(reduce_mean(square(x))); }

  AdafactorOptions options_;
  std::vector<Variable> rows_;
  std::vector<Variable> columns_;
  std::vector<Variable> velocities_;
  Tensor step_;
};

class MuonImpl final : public OptimizerImpl {
 public:
  explicit MuonImpl(const MuonOptions& o) : OptimizerImpl("Muon", settings_of(o)), options_(o) {}
  void make_slots(const std::vector<Variable>& weights) override {
    std::vector<Variable> momentums, velocities;
    for (const Variable& w : weights) {
      momentums.push_back(add_slot(w, "momentum"));
      velocities.push_back(is_matrix(w) ? Variable() : add_slot(w, "velocity"));
    }
    momentums_ = std::move(momentums);
    velocities_ = std::move(velocities);
  }
  void begin_step(const Tensor& step) override { step_ = step; }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const Variable& momentum = momentums_[i];
    if (!velocities_[i].defined()) {
      const Tensor m = momentum.read_value() * options_.momentum + g;
      momentum.assign(m);
      const Tensor direction = orthogonal(options_.nesterov ? g + m * options_.momentum : m);
      const double side = static_cast<double>(std::max(w.shape().dim(0), w.shape().dim(1)));
      w.assign_sub(rate * direction * (std::sqrt(side) * options_.rms_rate));
      return;
    }
    const Variable& velocity = velocities_[i];
    const Tensor step = cast(step_, w.dtype());
    const Tensor m0 = momentum.read_value(), v0 = velocity.read_value();
    const Tensor m = m0 + (g - m0) * (1 - options_.adam_beta_1);
    const Tensor v = v0 + (square(g) - v0) * (1 - options_.adam_beta_2);
    momentum.assign(m);
    velocity.assign(v);
    const Tensor alpha = rate * options_.adam_lr_ratio * sqrt(1 - pow(options_.adam_beta_2, step)) /
                         (1 - pow(options_.adam_beta_1, step));
    w.assign_sub(m * alpha / (sqrt(v) + options_.epsilon));
  }

 private:
  bool is_matrix(const Variable& w) const {
    return w.shape().rank() == 2 &&
           !(options_.exclude_embeddings && w.name().find("embedding") != std::string::npos);
  }
  Tensor orthogonal(Tensor x) const {
    const bool is_tall = x.dim(0) > x.dim(1);
    if (is_tall) x = transpose(x);
    x = x / (sqrt(reduce_sum(square(x))) + 1e-7);
    for (int i = 0; i < options_.ns_steps; ++i) {
      const Tensor a = matmul(x, x, {.transpose_b = true});
      const Tensor b = a * options_.muon_b + matmul(a * options_.muon_c, a);
      x = x * options_.muon_a + matmul(b, x);
    }
    return is_tall ? transpose(x) : x;
  }

  MuonOptions options_;
  std::vector<Variable> momentums_;
  std::vector<Variable> velocities_;
  Tensor step_;
};

}  // namespace

Muon::Muon(const MuonOptions& o) : Optimizer(std::make_shared<MuonImpl>(o)) {}
Lion::Lion(const LionOptions& o) : Optimizer(std::make_shared<LionImpl>(o)) {}
Ftrl::Ftrl(const FtrlOptions& o) : Optimizer(std::make_shared<FtrlImpl>(o)) {}
Lamb::Lamb(const LambOptions& o) : Optimizer(std::make_shared<LambImpl>(o)) {}
Adafactor::Adafactor(const AdafactorOptions& o) : Optimizer(std::make_shared<AdafactorImpl>(o)) {}

}  // namespace tandem::keras::optimizers
