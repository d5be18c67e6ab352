#include "tandem/keras/optimizers.h"

#include <map>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/optimizer_settings.h"
#include "tandem/keras/more_optimizers.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/training_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace optimizers {
namespace {

constexpr auto kSGD = [](auto& a, auto& o) {
  kShared(a, o);
  a("momentum", o.momentum);
  a("nesterov", o.nesterov);
};
constexpr auto kAdam = [](auto& a, auto& o) {
  kShared(a, o);
  a("beta_1", o.beta_1);
  a("beta_2", o.beta_2);
  a("epsilon", o.epsilon);
  if constexpr (requires { o.amsgrad; }) a("amsgrad", o.amsgrad);
};
constexpr auto kRMSprop = [](auto& a, auto& o) {
  kShared(a, o);
  a("rho", o.rho);
  a("momentum", o.momentum);
  a("epsilon", o.epsilon);
  a("centered", o.centered);
};
constexpr auto kAdagrad = [](auto& a, auto& o) {
  kShared(a, o);
  a("initial_accumulator_value", o.initial_accumulator_value);
  a("epsilon", o.epsilon);
};
constexpr auto kAdadelta = [](auto& a, auto& o) {
  kShared(a, o);
  a("rho", o.rho);
  a("epsilon", o.epsilon);
};

Tensor number(double value, const Variable& like) { return constant(Tensor(value), like.dtype()); }

class SGDImpl final : public OptimizerImpl {
 public:
  explicit SGDImpl(const SGDOptions& o) : OptimizerImpl("SGD", settings_of(o)), options_(o) {
    internal::require_range("SGD", "momentum", o.momentum, 0, 1);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    if (options_.momentum == 0) return;
    momentums_ = add_slots(weights, "momentum");
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    if (options_.momentum == 0) {
      training::apply_gradient_descent(w, rate, g);
    } else {
      training::apply_keras_momentum(w, momentums_[i], rate, g, number(options_.momentum, w),
                                     options_.nesterov);
    }
  }

 private:
  SGDOptions options_;
  std::vector<Variable> momentums_;
};

struct Betas {
  double beta_1;
  double beta_2;
  double epsilon;
};

void check(const std::string& who, const Betas& b) {
  internal::require_range(who, "beta_1", b.beta_1, 0, 1);
  internal::require_range(who, "beta_2", b.beta_2, 0, 1);
  internal::require_range(who, "epsilon", b.epsilon, 0, 1e30);
}

class AdamImpl final : public OptimizerImpl {
 public:
  AdamImpl(std::string class_name, OptimizerSettings settings, const Betas& betas, bool amsgrad)
      : OptimizerImpl(class_name, std::move(settings)), betas_(betas), amsgrad_(amsgrad) {
    check(class_name, betas);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    auto pairs = add_slot_pairs(weights, "momentum", "velocity");
    if (amsgrad_) largest_ = add_slots(weights, "velocity_hat");
    std::tie(m_, v_) = std::move(pairs);
  }
  void begin_step(const Tensor& step) override {
    beta_1_power_ = pow(betas_.beta_1, step);
    beta_2_power_ = pow(betas_.beta_2, step);
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const training::AdamScalars scalars{
        cast(beta_1_power_, w.dtype()), cast(beta_2_power_, w.dtype()), rate,
        number(betas_.beta_1, w),       number(betas_.beta_2, w),       number(betas_.epsilon, w)};
    if (amsgrad_) {
      training::apply_adam_with_amsgrad(w, m_[i], v_[i], largest_[i], scalars, g);
    } else {
      training::apply_adam(w, m_[i], v_[i], scalars, g);
    }
  }

 private:
  Betas betas_;
  bool amsgrad_;
  std::vector<Variable> m_;
  std::vector<Variable> v_;
  std::vector<Variable> largest_;
  Tensor beta_1_power_;
  Tensor beta_2_power_;
};

class RMSpropImpl final : public OptimizerImpl {
 public:
  explicit RMSpropImpl(const RMSpropOptions& o)
      : OptimizerImpl("RMSprop", settings_of(o)), options_(o) {
    internal::require_range("RMSprop", "rho", o.rho, 0, 1);
    internal::require_range("RMSprop", "momentum", o.momentum, 0, 1);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    std::vector<Variable> velocities = add_slots(weights, "velocity"), momentums, means;
    if (options_.momentum > 0) momentums = add_slots(weights, "momentum");
    if (options_.centered) means = add_slots(weights, "average_gradient");
    velocities_ = std::move(velocities);
    momentums_ = std::move(momentums);
    means_ = std::move(means);
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    if (options_.momentum == 0) return update_without_momentum(i, w, g, rate);
    const Tensor rho = number(options_.rho, w);
    const Tensor momentum = number(options_.momentum, w);
    const Tensor epsilon = number(options_.epsilon, w);
    if (options_.centered) {
      training::apply_centered_rms_prop(w, means_[i], velocities_[i], momentums_[i], rate, rho,
                                        momentum, epsilon, g);
    } else {
      training::apply_rms_prop(w, velocities_[i], momentums_[i], rate, rho, momentum, epsilon, g);
    }
  }

 private:
  // The fused op wants a momentum for each weight; Keras keeps none here.
  void update_without_momentum(std::size_t i, const Variable& w, const Tensor& g,
                               const Tensor& rate) {
    const double rho = options_.rho;
    const Tensor velocity = velocities_[i].read_value() * rho + square(g) * (1 - rho);
    velocities_[i].assign(velocity);
    Tensor spread = velocity;
    if (options_.centered) {
      const Tensor mean = means_[i].read_value() * rho + g * (1 - rho);
      means_[i].assign(mean);
      spread = velocity - square(mean);
    }
    w.assign_sub(rate * g / sqrt(spread + options_.epsilon));
  }

  RMSpropOptions options_;
  std::vector<Variable> velocities_;
  std::vector<Variable> momentums_;
  std::vector<Variable> means_;
};

class AdagradImpl final : public OptimizerImpl {
 public:
  explicit AdagradImpl(const AdagradOptions& o)
      : OptimizerImpl("Adagrad", settings_of(o)), options_(o) {
    internal::require_range("Adagrad", "initial_accumulator_value", o.initial_accumulator_value, 0,
                            1e30);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    sums_ = add_slots(weights, "accumulator", options_.initial_accumulator_value);
  }
  // Not the fused op: Keras adds epsilon under the root.
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const Tensor sum = sums_[i].read_value() + square(g);
    sums_[i].assign(sum);
    w.assign_sub(rate * g / sqrt(sum + options_.epsilon));
  }

 private:
  AdagradOptions options_;
  std::vector<Variable> sums_;
};

class AdamaxImpl final : public OptimizerImpl {
 public:
  explicit AdamaxImpl(const AdamLikeOptions& o)
      : OptimizerImpl("Adamax", settings_of(o)), betas_{o.beta_1, o.beta_2, o.epsilon} {
    check("Adamax", betas_);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    std::tie(m_, norms_) = add_slot_pairs(weights, "momentum", "norm");
  }
  void begin_step(const Tensor& step) override { beta_1_power_ = pow(betas_.beta_1, step); }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    training::apply_ada_max(w, m_[i], norms_[i], cast(beta_1_power_, w.dtype()), rate,
                            number(betas_.beta_1, w), number(betas_.beta_2, w),
                            number(betas_.epsilon, w), g);
  }

 private:
  Betas betas_;
  std::vector<Variable> m_;
  std::vector<Variable> norms_;
  Tensor beta_1_power_;
};

class NadamImpl final : public OptimizerImpl {
 public:
  explicit NadamImpl(const AdamLikeOptions& o)
      : OptimizerImpl("Nadam", settings_of(o)), betas_{o.beta_1, o.beta_2, o.epsilon} {
    check("Nadam", betas_);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    auto pairs = add_slot_pairs(weights, "momentum", "velocity");
    product_ = add_scalar("u_product", 1.0, "_u_product");
    std::tie(m_, v_) = std::move(pairs);
  }
  void begin_step(const Tensor& step) override {
    const auto mu = [&](const Tensor& t) { return (1 - pow(0.96, t) * 0.5) * betas_.beta_1; };
    mu_ = mu(step);
    next_mu_ = mu(step + 1);
    beta_2_power_ = pow(betas_.beta_2, step);
    now_ = product_.read_value() * mu_;
    product_.assign(now_);
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const auto as = [&](const Tensor& x) { return cast(x, w.dtype()); };
    const Tensor m = m_[i].read_value() * betas_.beta_1 + g * (1 - betas_.beta_1);
    const Tensor v = v_[i].read_value() * betas_.beta_2 + square(g) * (1 - betas_.beta_2);
    m_[i].assign(m);
    v_[i].assign(v);
    const Tensor ahead =
        as(next_mu_) * m / (1 - as(now_ * next_mu_)) + (1 - as(mu_)) * g / (1 - as(now_));
    w.assign_sub(ahead * rate / (sqrt(v / (1 - as(beta_2_power_))) + betas_.epsilon));
  }

 private:
  Betas betas_;
  std::vector<Variable> m_;
  std::vector<Variable> v_;
  Variable product_;
  Tensor mu_, next_mu_, beta_2_power_, now_;
};

class AdadeltaImpl final : public OptimizerImpl {
 public:
  explicit AdadeltaImpl(const AdadeltaOptions& o)
      : OptimizerImpl("Adadelta", settings_of(o)), options_(o) {
    internal::require_range("Adadelta", "rho", o.rho, 0, 1);
  }
  void make_slots(const std::vector<Variable>& weights) override {
    std::tie(sums_, steps_) = add_slot_pairs(weights, "accumulated_grad", "accumulated_delta_var");
  }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    training::apply_adadelta(w, sums_[i], steps_[i], rate, number(options_.rho, w),
                             number(options_.epsilon, w), g);
  }

 private:
  AdadeltaOptions options_;
  std::vector<Variable> sums_;
  std::vector<Variable> steps_;
};

}  // namespace

SGD::SGD(const SGDOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<SGDImpl>(o), kSGD, o)) {}
Adam::Adam(const AdamOptions& o)
    : Optimizer(internal::with_arguments(
          std::make_shared<AdamImpl>("Adam", settings_of(o), Betas{o.beta_1, o.beta_2, o.epsilon},
                                     o.amsgrad),
          kAdam, o)) {}
AdamW::AdamW(const AdamWOptions& o)
    : Optimizer(internal::with_arguments(
          std::make_shared<AdamImpl>("AdamW", settings_of(o), Betas{o.beta_1, o.beta_2, o.epsilon},
                                     o.amsgrad),
          kAdam, o)) {}
RMSprop::RMSprop(const RMSpropOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<RMSpropImpl>(o), kRMSprop, o)) {}
Adagrad::Adagrad(const AdagradOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<AdagradImpl>(o), kAdagrad, o)) {}
Adamax::Adamax(const AdamLikeOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<AdamaxImpl>(o), kAdam, o)) {}
Nadam::Nadam(const AdamLikeOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<NadamImpl>(o), kAdam, o)) {}
Adadelta::Adadelta(const AdadeltaOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<AdadeltaImpl>(o), kAdadelta, o)) {}

namespace {

template <class Class, class Options, class List>
bool add(const char* name, const List& list) {
  return internal::register_class<Optimizer, Class, Options>(name, list);
}

const bool kRegistered[] = {add<SGD, SGDOptions>("SGD", kSGD),
                            add<Adam, AdamOptions>("Adam", kAdam),
                            add<AdamW, AdamWOptions>("AdamW", kAdam),
                            add<RMSprop, RMSpropOptions>("RMSprop", kRMSprop),
                            add<Adagrad, AdagradOptions>("Adagrad", kAdagrad),
                            add<Adamax, AdamLikeOptions>("Adamax", kAdam),
                            add<Nadam, AdamLikeOptions>("Nadam", kAdam),
                            add<Adadelta, AdadeltaOptions>("Adadelta", kAdadelta)};

}  // namespace

}  // namespace optimizers

namespace {

template <class T>
Optimizer make() {
  return T();
}

const std::map<std::string, Optimizer (*)()>& optimizers_by_name() {
  using namespace optimizers;
  using Table = std::map<std::string, Optimizer (*)()>;
  static const NeverDestroyed<Table> table([] {
    return Table{
        {"sgd", make<SGD>},         {"adam", make<Adam>},         {"adamw", make<AdamW>},
        {"rmsprop", make<RMSprop>}, {"adagrad", make<Adagrad>},   {"adamax", make<Adamax>},
        {"nadam", make<Nadam>},     {"adadelta", make<Adadelta>}, {"lion", make<Lion>},
        {"ftrl", make<Ftrl>},       {"lamb", make<Lamb>},         {"adafactor", make<Adafactor>},
        {"muon", make<Muon>},
    };
  });
  return *table;
}

}  // namespace

Optimizer::Optimizer(const std::string& name) : learning_rate(nullptr) {
  const auto& table = optimizers_by_name();
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = table.find(lower);
  if (found == table.end()) {
    std::vector<std::string> names;
    for (const auto& entry : table) names.push_back(entry.first);
    throw InvalidArgumentError(cat(internal::no_such("optimizer", name, names),
                                   ", or give an object of tandem::keras::optimizers."));
  }
  *this = found->second();
  name_ = found->first;
}

}  // namespace tandem::keras
