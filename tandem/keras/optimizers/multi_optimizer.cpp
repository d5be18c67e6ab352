#include "tandem/keras/multi_optimizer.h"

#include <memory>
#include <regex>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/optimizer_settings.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::optimizers {

OptimizerMap::OptimizerMap(Optimizer default_optimizer,
                           std::map<std::string, Optimizer> optimizer_map)
    : default_(std::move(default_optimizer)), map_(std::move(optimizer_map)) {}

const Optimizer& OptimizerMap::at(const String& name) const {
  if (const auto exact = map_.find(name); exact != map_.end()) return exact->second;
  const Optimizer* matching = nullptr;
  for (const auto& [pattern, optimizer] : map_) {
    try {
      if (!std::regex_match(name, std::regex(pattern))) continue;
    } catch (const std::regex_error& error) {
      throw InvalidArgumentError(
          cat("OptimizerMap: '", pattern, "' is no regular expression: ", error.what(), "."));
    }
    if (matching) {
      throw InvalidArgumentError(
          cat("OptimizerMap: several entries match the weight '", name, "'."));
    }
    matching = &optimizer;
  }
  return matching ? *matching : default_;
}

namespace {

class MultiImpl final : public OptimizerImpl {
 public:
  MultiImpl(const OptimizerMap& map, const std::string& name)
      : OptimizerImpl("MultiOptimizer", {.learning_rate = 0.0, .name = name}), map_(map) {
    for (const auto& [pattern, optimizer] : map.entries()) add(optimizer);
    add(map.default_optimizer());
  }

  void make_slots(const std::vector<Variable>& weights) override {
    std::vector<std::vector<Variable>> of_each(inner_.size());
    for (const Variable& weight : weights) of_each[index_of(weight)].push_back(weight);
    for (std::size_t i = 0; i < inner_.size(); ++i)
      if (!of_each[i].empty()) inner_[i].build(of_each[i]);
  }
  void update(std::size_t, const Variable&, const Tensor&, const Tensor&) override {
    throw InternalError("MultiOptimizer: weights are updated by the inner optimizers.");
  }
  void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& weights) override {
    if (gradients.size() != weights.size()) {
      throw InvalidArgumentError(
          cat("There are ", gradients.size(), " gradients for ", weights.size(), " variables."));
    }
    build(weights);
    std::vector<std::vector<Tensor>> of_each(inner_.size());
    std::vector<std::vector<Variable>> theirs(inner_.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t n = index_of(weights[i]);
      of_each[n].push_back(gradients[i]);
      theirs[n].push_back(weights[i]);
    }
    for (std::size_t n = 0; n < inner_.size(); ++n)
      if (!theirs[n].empty()) inner_[n].apply(of_each[n], theirs[n]);
    iterations().assign_add(Tensor(std::int64_t{1}));
  }
  std::vector<Variable> variables() const override {
    std::vector<Variable> all = OptimizerImpl::variables();
    for (const Optimizer& optimizer : inner_)
      for (const Variable& v : optimizer.variables()) all.push_back(v);
    return all;
  }
  std::vector<std::pair<std::string, Variable>> saved_parts() const override {
    auto parts = OptimizerImpl::saved_parts();
    for (std::size_t n = 0; n < inner_.size(); ++n)
      for (const auto& [path, variable] : inner_[n].impl()->saved_parts())
        parts.emplace_back(cat("_inner_optimizers/", n, "/", path), variable);
    return parts;
  }
  void finalize_variable_values() const override {
    for (const Optimizer& optimizer : inner_)
      if (optimizer.impl()->built()) optimizer.finalize_variable_values();
  }
  Tensor learning_rate() const override { return refuse(); }
  void set_learning_rate(double) override { refuse(); }
  const std::vector<Optimizer>& inner() const { return inner_; }

 private:
  [[noreturn]] static Tensor refuse() {
    throw FailedPreconditionError(
        "A MultiOptimizer has no learning rate of its own. Use that of one of its optimizers().");
  }
  void add(const Optimizer& optimizer) {
    for (const Optimizer& known : inner_)
      if (known.impl() == optimizer.impl()) return;
    inner_.push_back(optimizer);
  }
  std::size_t index_of(const Variable& weight) const {
    const Optimizer& optimizer = map_.at(weight.name());
    std::size_t n = 0;
    while (inner_[n].impl() != optimizer.impl()) ++n;
    return n;
  }

  OptimizerMap map_;
  std::vector<Optimizer> inner_;
};

class ScheduleFreeImpl final : public OptimizerImpl {
 public:
  explicit ScheduleFreeImpl(const ScheduleFreeAdamWOptions& o)
      : OptimizerImpl("ScheduleFreeAdamW", settings_of(o)), options_(o) {
    internal::require_range("ScheduleFreeAdamW", "beta_2", o.beta_2, 0, 1);
    if (!(o.beta_1 > 0 && o.beta_1 <= 1)) {
      throw InvalidArgumentError(
          cat("ScheduleFreeAdamW: beta_1 must be above 0 and at most 1, got ", o.beta_1, "."));
    }
  }
  void make_slots(const std::vector<Variable>& weights) override {
    auto [current, squares] = add_slot_pairs(weights, "momentum", "velocity");
    for (std::size_t i = 0; i < weights.size(); ++i) current[i].assign(weights[i].read_value());
    current_ = std::move(current);
    squares_ = std::move(squares);
  }
  void begin_step(const Tensor& step) override { step_ = step; }
  void update(std::size_t i, const Variable& w, const Tensor& g, const Tensor& rate) override {
    const DType dtype = w.dtype();
    const Tensor step = cast(step_, dtype);
    Tensor lr = rate;
    if (options_.warmup_steps > 0)
      lr = lr * minimum(step / static_cast<double>(options_.warmup_steps), 1.0);
    const double b1 = options_.beta_1;
    const Tensor correction = 1.0 - pow(constant(Tensor(options_.beta_2), dtype), step);
    const Tensor square_mean = squares_[i].read_value();
    squares_[i].assign_add((square(g) - square_mean) * (1 - options_.beta_2));
    const Tensor size = sqrt(squares_[i].read_value() / correction) + options_.epsilon;
    current_[i].assign_sub(lr * g / size);
    const Tensor now = current_[i].read_value();
    const Tensor share = 1.0 / step;
    // Keras on TensorFlow reads `current` after the update here, where the published method has the
    // value before it. The figures are to be Keras'.
    const Tensor mean = (w.read_value() - (1 - b1) * now) / b1;
    const Tensor new_mean = (1.0 - share) * mean + share * now;
    w.assign((1 - b1) * now + b1 * new_mean);
  }

 private:
  ScheduleFreeAdamWOptions options_;
  std::vector<Variable> current_, squares_;
  Tensor step_;
};

constexpr auto kScheduleFree = [](auto& a, auto& o) {
  kShared(a, o);
  a("beta_1", o.beta_1);
  a("beta_2", o.beta_2);
  a("epsilon", o.epsilon);
  a("warmup_steps", o.warmup_steps);
};

const bool kRegistered =
    internal::register_class<Optimizer, ScheduleFreeAdamW, ScheduleFreeAdamWOptions>(
        "ScheduleFreeAdamW", kScheduleFree);

}  // namespace

MultiOptimizer::MultiOptimizer(const OptimizerMap& map, const String& name)
    : Optimizer(std::make_shared<MultiImpl>(map, name)) {}
std::vector<Optimizer> MultiOptimizer::optimizers() const {
  return static_cast<const MultiImpl&>(*impl()).inner();
}

ScheduleFreeAdamW::ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& o)
    : Optimizer(internal::with_arguments(std::make_shared<ScheduleFreeImpl>(o), kScheduleFree, o)) {
}

}  // namespace tandem::keras::optimizers
