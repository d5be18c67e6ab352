#include "tandem/keras/metric.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/keras/internal/metric_names.h"
#include "tandem/keras/internal/metric_update.h"
#include "tandem/keras/internal/precision.h"
#include "tandem/keras/internal/weighting.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras {

MetricImpl::~MetricImpl() = default;

Variable MetricImpl::add_variable(const std::string& name, const Shape& shape) {
  TraceScope eager(nullptr);
  StopRecording quiet;
  Tensor initial = zeros(shape);
  Variable variable(initial, {.trainable = false, .name = name_ + "/" + name});
  variables_.emplace_back(variable, std::move(initial));
  return variable;
}

void MetricImpl::reset_state() const {
  for (const auto& [variable, initial] : variables_) variable.assign(initial);
}

std::vector<Variable> MetricImpl::variables() const {
  std::vector<Variable> all;
  for (const auto& entry : variables_) all.push_back(entry.first);
  return all;
}

namespace internal {

std::string name_or(const std::string& given, const char* standard) {
  return given.empty() ? standard : given;
}

MeanMetric::MeanMetric(std::string name, Metric::Function function, Direction direction)
    : MetricImpl(std::move(name), direction),
      function_(std::move(function)),
      total_(add_variable("total", {})),
      count_(add_variable("count", {})) {}

void MeanMetric::update_state(const Tensor& y_true, const Tensor& y_pred,
                              const Tensor& sample_weight) {
  Tensor weight = sample_weight;
  if (function_) weight = masked_weight(sample_weight, find_mask(y_pred));
  const WeightedSum batch = weighted_sum(function_ ? function_(y_true, y_pred) : y_pred, weight);
  add(batch.sum, batch.count);
}

void MeanMetric::add(const Tensor& sum, const Tensor& count) {
  total_.assign_add(sum);
  count_.assign_add(count);
}

Tensor MeanMetric::result() const { return math::divide_no_nan(total_, count_); }

}  // namespace internal

// A metric, or a name that the first shapes will decide.
struct Metric::State {
  std::string given_name;
  bool by_name = false;
  std::shared_ptr<MetricImpl> impl;
};

Metric::Metric(const std::string& name) : state_(std::make_shared<State>()) {
  state_->given_name = name;
  state_->by_name = true;
  if (!internal::is_accuracy(name)) state_->impl = internal::make_metric(name);
}

Metric::Metric(std::shared_ptr<MetricImpl> impl) : state_(std::make_shared<State>()) {
  if (!impl) throw InvalidArgumentError("A Metric was made from a null pointer.");
  state_->given_name = impl->name();
  state_->impl = std::move(impl);
}

Metric Metric::from_function(std::string name, Function function, Direction direction) {
  return Metric(
      std::make_shared<internal::MeanMetric>(std::move(name), std::move(function), direction));
}

Metric Metric::fresh() const { return state_->by_name ? Metric(state_->given_name) : *this; }

std::shared_ptr<MetricImpl> Metric::resolve(const PartialShape& y_true,
                                            const PartialShape& y_pred) const {
  if (!state_->impl) state_->impl = internal::make_accuracy(state_->given_name, y_true, y_pred);
  return state_->impl;
}

MetricImpl& Metric::decided(const Tensor& y_true, const Tensor& y_pred) const {
  if (state_->impl) return *state_->impl;
  if (!y_true.defined())
    throw InvalidArgumentError(cat("Metric '", name(), "' was given undefined labels."));
  return *resolve(y_true.partial_shape(), y_pred.partial_shape());
}

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred,
                          const Tensor& sample_weight) const {
  if (!y_pred.defined())
    throw InvalidArgumentError(cat("Metric '", name(), "' was given undefined predictions."));
  internal::update_metric(decided(y_true, y_pred), name(), y_true,
                          internal::predictions_in_full_precision(y_pred), sample_weight);
}

Tensor Metric::result() const { return state_->impl ? state_->impl->result() : Tensor(0.0f); }
void Metric::reset_state() const {
  if (state_->impl) state_->impl->reset_state();
}
const std::string& Metric::name() const { return state_->given_name; }
std::string Metric::given_by_name() const {
  return state_->by_name ? state_->given_name : std::string();
}
std::vector<Variable> Metric::variables() const {
  return state_->impl ? state_->impl->variables() : std::vector<Variable>();
}

}  // namespace tandem::keras
