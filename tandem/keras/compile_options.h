#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/keras/loss.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/optimizer.h"

namespace tandem::keras {

/// A loss for all outputs of a model, one for each in order, or by the outputs' names.
///
///     .loss = "mse"        .loss = {"mse", "mae"}        .loss = {{"price", "mse"}, {"kind",
///     "bce"}}
class Losses {
 public:
  using Named = std::pair<const std::string, Loss>;

  Losses() = default;
  template <class L>
  requires(std::is_convertible_v<L, Loss>) Losses(L&& loss) : all_(std::forward<L>(loss)) {}
  Losses(std::initializer_list<Loss> each) : each_(each) {}
  Losses(std::vector<Loss> each) : each_(std::move(each)) {}
  Losses(std::initializer_list<Named> by_name) : by_name_(by_name) {}
  Losses(std::map<std::string, Loss> by_name) : by_name_(std::move(by_name)) {}

  const Loss& all() const { return all_; }
  const std::vector<Loss>& each() const { return each_; }
  const std::map<std::string, Loss>& by_name() const { return by_name_; }
  bool empty() const { return !all_.defined() && each_.empty() && by_name_.empty(); }

 private:
  Loss all_;
  std::vector<Loss> each_;
  std::map<std::string, Loss> by_name_;
};

/// Metrics of the only output, or of outputs by name.
///
///     .metrics = {"accuracy", "mse"}        .metrics = {{"kind", {"accuracy"}}}
class Metrics {
 public:
  using Named = std::pair<const std::string, std::vector<Metric>>;

  Metrics() = default;
  Metrics(std::initializer_list<Metric> metrics) : all_(metrics) {}
  Metrics(std::vector<Metric> metrics) : all_(std::move(metrics)) {}
  Metrics(std::vector<std::vector<Metric>> each) : each_(std::move(each)) {}
  Metrics(std::initializer_list<Named> by_name) : by_name_(by_name) {}
  Metrics(std::map<std::string, std::vector<Metric>> by_name) : by_name_(std::move(by_name)) {}

  const std::vector<Metric>& all() const { return all_; }
  const std::vector<std::vector<Metric>>& each() const { return each_; }
  const std::map<std::string, std::vector<Metric>>& by_name() const { return by_name_; }

 private:
  std::vector<Metric> all_;
  std::vector<std::vector<Metric>> each_;
  std::map<std::string, std::vector<Metric>> by_name_;
};

/// What the losses of the outputs are multiplied by: one number for each output in order, or by the
/// outputs' names, others with 1.
///
///     .loss_weights = {1, 0.2}        .loss_weights = {{"kind", 0.2}}
class LossWeights {
 public:
  using Named = std::pair<const std::string, double>;

  LossWeights() = default;
  LossWeights(std::initializer_list<double> each) : each_(each) {}
  LossWeights(std::vector<double> each) : each_(std::move(each)) {}
  LossWeights(std::initializer_list<Named> by_name) : by_name_(by_name) {}
  LossWeights(std::map<std::string, double> by_name) : by_name_(std::move(by_name)) {}

  const std::vector<double>& each() const { return each_; }
  const std::map<std::string, double>& by_name() const { return by_name_; }
  bool empty() const { return each_.empty() && by_name_.empty(); }

 private:
  std::vector<double> each_;
  std::map<std::string, double> by_name_;
};

/// How a model is to be trained; see Model::compile.
struct CompileOptions {
  Optimizer optimizer = "rmsprop";
  Losses loss = {};
  LossWeights loss_weights = {};
  Metrics metrics = {};
  /// Metrics that take the sample weights into account.
  Metrics weighted_metrics = {};
  /// Without tracing, for debugging: slower, but every op runs where it stands in the program.
  bool run_eagerly = false;
  /// Wraps the optimizer into a LossScaleOptimizer if the model's policy is "mixed_float16".
  bool auto_scale_loss = true;
};

}  // namespace tandem::keras
