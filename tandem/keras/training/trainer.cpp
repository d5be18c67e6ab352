#include "tandem/keras/internal/trainer.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/graph/rng_position.h"
#include "tandem/keras/internal/activation_collector.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/logits.h"
#include "tandem/keras/internal/loss_collector.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/metric_update.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/precision.h"
#include "tandem/keras/internal/sequential_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/loss_scale_optimizer.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras::internal {
namespace {

Tensor scalar_of(const Tensor& result) {
  return cast(result.rank() == 0 ? result : reduce_mean(result), float32);
}

// Nothing where a device that does not compute has it.
std::optional<double> value_of(const Tensor& scalar) {
  const Ref<Buffer>& buffer = scalar.impl()->array.buffer();
  if (buffer && !buffer->computed()) return std::nullopt;
  return static_cast<double>(scalar.item<float>());
}

Logs logs_of(const std::map<std::string, std::optional<double>>& values) {
  Logs logs;
  for (const auto& [name, value] : values) {
    if (value) {
      logs.set(name, *value);
    } else {
      logs.set_unmaterialized(name);
    }
  }
  return logs;
}

}  // namespace

Trainer::Trainer(ModelImpl& model, CompileOptions options)
    : model_(model),
      given_(std::move(options)),
      options_(given_),
      loss_(std::make_shared<MeanMetric>("loss", nullptr, Direction::kDown)),
      train_(make_train_step()),
      test_(make_test_step()),
      observed_(make_observed_step()),
      reported_(make_reported_step()),
      own_steps_(dynamic_cast<FunctionalImpl*>(&model) == nullptr &&
                 dynamic_cast<SequentialImpl*>(&model) == nullptr) {
  options_.optimizer = options_.optimizer.fresh();
  if (options_.auto_scale_loss && model_.dtype_policy().name() == "mixed_float16" &&
      !optimizers::LossScaleOptimizer::is(options_.optimizer)) {
    options_.optimizer = optimizers::LossScaleOptimizer(options_.optimizer);
  }
  for (const std::string& name : model_.output_names()) outputs_.push_back({.name = name});
  choose_losses();
  choose_metrics();
}

Trainer::Step Trainer::make_train_step() {
  return Step([this](const data::Element& batch) { return model_step(true, batch); },
              {.name = "train_step"});
}
Trainer::Step Trainer::make_test_step() {
  return Step([this](const data::Element& batch) { return model_step(false, batch); },
              {.name = "test_step"});
}
// The names come from tracing, the values from every call.
Trainer::Step Trainer::make_observed_step() {
  return Step(
      [this](const data::Element& batch) {
        observation_ = {};
        observing_ = true;
        std::vector<Tensor> values = model_step(true, batch);
        observing_ = false;
        for (const auto* named : {&observation_.gradients, &observation_.activations})
          for (const auto& [name, value] : *named) values.push_back(value);
        return values;
      },
      {.name = "observed_train_step"});
}

// The values are those of `results`, on the host.
Trainer::Step Trainer::make_reported_step() {
  return Step(
      [this](const data::Element& batch) {
        reset();
        model_step(true, batch);
        reported_names_.clear();
        std::vector<Tensor> values;
        const auto report = [&](const std::string& name, const MetricImpl& metric) {
          Tensor result = scalar_of(metric.result());
          if (Runtime::current().devices().size() > 1) {
            const DeviceScope on_host("/CPU:0");
            result = identity(result);
          }
          reported_names_.push_back(name);
          values.push_back(result);
        };
        each_metric(report);
        return values;
      },
      {.name = "reported_train_step"});
}

std::vector<Tensor> Trainer::model_step(bool training, const data::Element& batch) {
  struct Stepping {
    Trainer& trainer;
    Trainer* outer;
    explicit Stepping(Trainer& t, const data::Element& batch)
        : trainer(t), outer(std::exchange(t.model_.stepping_, &t)) {
      t.batch_ = &batch;
    }
    ~Stepping() {
      trainer.model_.stepping_ = outer;
      trainer.batch_ = nullptr;
    }
  };
  const Stepping stepping(*this, batch);
  const ModelImpl::StepResults given =
      training ? model_.train_step(batch) : model_.test_step(batch);
  Results& results = training ? train_results_ : test_results_;
  results.names.clear();
  std::vector<Tensor> values;
  for (const auto& [name, value] : given) {
    results.names.push_back(name);
    values.push_back(value);
  }
  return values;
}

namespace {

std::string names_of_outputs(const ModelImpl& model) { return join(model.output_names()); }

[[noreturn]] void throw_unknown_output(const char* what, const std::string& name,
                                       const ModelImpl& model) {
  throw InvalidArgumentError(cat("compile: ", what, " names the output '", name,
                                 "', but the outputs of model '", model.name(),
                                 "' are: ", names_of_outputs(model), "."));
}

void require_one_each(const char* what, std::size_t given, const ModelImpl& model) {
  const std::size_t wanted = model.output_names().size();
  if (given != wanted) {
    throw InvalidArgumentError(cat("compile: ", given, " ", what, " are given for the ", wanted,
                                   " outputs of model '", model.name(),
                                   "': ", names_of_outputs(model), "."));
  }
}

}  // namespace

void Trainer::choose_losses() {
  const Losses& losses = options_.loss;
  if (!losses.each().empty()) require_one_each("losses", losses.each().size(), model_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (losses.all().defined()) outputs_[i].loss = losses.all();
    if (!losses.each().empty()) outputs_[i].loss = losses.each()[i];
  }
  for (const auto& [name, loss] : losses.by_name()) {
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&name = name](const Output& o) { return o.name == name; });
    if (found == outputs_.end()) throw_unknown_output("loss", name, model_);
    found->loss = loss;
  }
  const LossWeights& weights = options_.loss_weights;
  if (!weights.each().empty()) {
    require_one_each("loss_weights", weights.each().size(), model_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].weight = weights.each()[i];
      outputs_[i].weighted = true;
    }
  }
  for (const auto& [name, weight] : weights.by_name()) {
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&name = name](const Output& o) { return o.name == name; });
    if (found == outputs_.end()) throw_unknown_output("loss_weights", name, model_);
    found->weight = weight;
    found->weighted = true;
  }
}

void Trainer::choose_metrics() {
  const auto choose = [&](const Metrics& metrics, std::vector<Metric> Output::*into) {
    if (!metrics.all().empty() && outputs_.size() > 1) {
      // Like in Keras, a flat list is one for each output.
      require_one_each("metrics", metrics.all().size(), model_);
      for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].*into = {metrics.all()[i]};
    } else if (!metrics.all().empty()) {
      outputs_.front().*into = metrics.all();
    }
    if (!metrics.each().empty()) {
      require_one_each("lists of metrics", metrics.each().size(), model_);
      for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].*into = metrics.each()[i];
    }
    for (const auto& [name, list] : metrics.by_name()) {
      const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                      [&name = name](const Output& o) { return o.name == name; });
      if (found == outputs_.end()) throw_unknown_output("metrics", name, model_);
      (*found).*into = list;
    }
  };
  choose(options_.metrics, &Output::metrics);
  choose(options_.weighted_metrics, &Output::weighted_metrics);
}

Trainer::Batch Trainer::split(const data::Element& batch) const {
  const auto inputs = static_cast<std::size_t>(model_.num_inputs());
  const auto outputs = static_cast<std::size_t>(model_.num_outputs());
  const std::size_t count = batch.size();
  if (count != inputs && count != inputs + outputs && count != inputs + outputs + 1 &&
      count != inputs + 2 * outputs) {
    throw InvalidArgumentError(
        cat("Model '", model_.name(), "' has ", inputs, " input(s) and ", outputs,
            " output(s), so a batch must be (inputs, labels) or (inputs, labels, sample weights), "
            "but it has ",
            count, " tensor(s)."));
  }
  Batch parts;
  const auto at = [&](std::size_t i) { return batch.begin() + static_cast<std::ptrdiff_t>(i); };
  parts.x.assign(at(0), at(inputs));
  parts.weights.resize(outputs);
  if (count == inputs) return parts;
  parts.y.assign(at(inputs), at(inputs + outputs));
  if (count == inputs + outputs + 1) parts.weights.assign(outputs, batch.back());
  if (count == inputs + 2 * outputs) parts.weights.assign(at(inputs + outputs), batch.end());
  return parts;
}

// Variables are made outside of traces, so all that has some must be ready before the first one.
void Trainer::prepare(const data::Element& batch, bool training) {
  if (!test_ready_) {
    const Batch parts = split(batch);
    std::vector<LayerImpl::TensorSpec> specs;
    for (const Tensor& x : parts.x) specs.push_back({x.dtype(), x.partial_shape()});
    const std::vector<LayerImpl::TensorSpec> results = model_.infer(specs, {});
    if (results.size() != outputs_.size()) {
      throw InvalidArgumentError(cat("Model '", model_.name(), "' gave ", results.size(),
                                     " outputs but says that it has ", outputs_.size(),
                                     ": override num_outputs and output_names of its ModelImpl."));
    }
    std::size_t losses = 0;
    for (const Output& output : outputs_) losses += output.loss.defined();
    std::set<std::string> names;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Output& output = outputs_[i];
      if (losses > 1 && output.loss.defined()) {
        output.tracker =
            std::make_shared<MeanMetric>(output.name + "_loss", nullptr, Direction::kDown);
      }
      const PartialShape labels = i < parts.y.size() ? parts.y[i].partial_shape() : PartialShape();
      const auto resolve = [&](const std::vector<Metric>& list, bool weighted) {
        for (const Metric& metric : list) {
          const std::string base =
              outputs_.size() > 1 ? output.name + "_" + metric.name() : metric.name();
          std::string name = base;
          if (weighted && names.contains(name)) name = "weighted_" + base;
          for (int n = 1; !names.insert(name).second; ++n) name = base + "_" + std::to_string(n);
          metrics_.push_back({name, metric.fresh().resolve(labels, results[i].shape), i, weighted});
        }
      };
      resolve(output.metrics, false);
      resolve(output.weighted_metrics, true);
    }
    test_ready_ = true;
  }
  if (training && !train_ready_) {
    std::vector<Variable> trainable;
    for (const LayerImpl::Weight& weight : model_.collect_weights()) {
      if (weight.trainable) trainable.push_back(weight.variable);
    }
    if (trainable.empty()) {
      throw FailedPreconditionError(cat("Model '", model_.name(),
                                        "' has no trainable weights, so there is nothing to train. "
                                        "Check set_trainable."));
    }
    options_.optimizer.build(trainable);
    trainable_ = std::move(trainable);
    train_ready_ = true;
  }
  for (const auto& action : std::exchange(when_ready_, {})) action();
}

void Trainer::when_ready(std::function<void()> action) {
  if (!test_ready_ || !train_ready_) when_ready_.push_back(std::move(action));
}

void Trainer::track_metrics(train::TrackedObject& object) const {
  const auto add = [&](const std::string& name, const MetricImpl& metric) {
    int number = 0;
    for (const Variable& variable : metric.variables())
      object.add(cat(name, "/", number++), variable);
  };
  add("loss", *loss_);
  for (const Output& output : outputs_)
    if (output.tracker) add(output.tracker->name(), *output.tracker);
  for (const Named& entry : metrics_) add(entry.name, *entry.metric);
}

// What the first batch decides (which accuracy is meant, say) is decided again if its step fails:
// the labels may have been at fault.
template <class Work>
void Trainer::attempt(Work work) {
  try {
    work();
    stepped_ = true;
  } catch (...) {
    if (!stepped_) {
      metrics_.clear();
      for (Output& output : outputs_) output.tracker.reset();
      test_ready_ = false;
      // What is traced already refers to the metrics that are gone.
      train_ = make_train_step();
      test_ = make_test_step();
      observed_ = make_observed_step();
      reported_ = make_reported_step();
      reportable_.reset();
    }
    throw;
  }
}

void Trainer::train(const data::Element& batch) {
  attempt([&] {
    // A step of the model's own may do without what a compiled one needs.
    if (!own_steps_ && (!train_ready_ || !test_ready_)) prepare(batch, true);
    if (observe_next_) {
      train_observed(batch);
    } else {
      train_results_.values = options_.run_eagerly ? model_step(true, batch) : train_(batch);
    }
    last_results_ = &train_results_;
  });
  if (!std::exchange(keep_next_function_, false) || options_.run_eagerly) return;
  train_function_ = train_.concrete(batch);
}

// A metric of the user's may compute its result on the host, which no trace can have.
bool Trainer::reports_in_step(const data::Element& batch) {
  if (own_steps_ || options_.run_eagerly || observe_next_ || keep_next_function_) return false;
  if (!reportable_) {
    prepare(batch, true);
    try {
      reported_.concrete(batch);
      reportable_ = true;
    } catch (const Error&) {
      reportable_ = false;
    }
  }
  return *reportable_;
}

Logs Trainer::train_and_report(const data::Element& batch) {
  std::vector<Tensor> values;
  attempt([&] {
    if (reports_in_step(batch)) values = reported_(batch);
  });
  if (values.empty()) {
    reset();
    train(batch);
    return results();
  }
  last_results_ = nullptr;
  std::map<std::string, std::optional<double>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named[reported_names_[i]] = value_of(values[i]);
  return logs_of(named);
}

void Trainer::train_observed(const data::Element& batch) {
  observe_next_ = false;
  if (options_.run_eagerly) {
    observation_ = {};
    observing_ = true;
    train_results_.values = model_step(true, batch);
    observing_ = false;
    return;
  }
  std::vector<Tensor> values = observed_(batch);
  std::size_t next = train_results_.names.size();
  for (auto* named : {&observation_.gradients, &observation_.activations})
    for (auto& [name, value] : *named) value = values.at(next++);
  values.resize(train_results_.names.size());
  train_results_.values = std::move(values);
}

void Trainer::test(const data::Element& batch) {
  attempt([&] {
    if (!own_steps_ && !test_ready_) prepare(batch, false);
    test_results_.values = options_.run_eagerly ? model_step(false, batch) : test_(batch);
    last_results_ = &test_results_;
  });
}

// Variables are made eagerly, whatever is being traced.
void Trainer::require_prepared(const data::Element& batch, bool training) {
  if (test_ready_ && (train_ready_ || !training)) return;
  const TraceScope eager(nullptr);
  const StopRecording quiet;
  prepare(batch, training);
}

std::vector<Tensor> Trainer::forward(const Batch& batch, bool training) const {
  std::vector<Tensor> outputs = model_.run(batch.x, {.training = training});
  for (Tensor& y : outputs) y = predictions_in_full_precision(y);
  return outputs;
}

Tensor Trainer::total_loss(const Batch& batch, const std::vector<Tensor>& outputs,
                           std::span<const Tensor> added) const {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    if (!output.loss.defined()) continue;
    if (i >= batch.y.size()) {
      throw InvalidArgumentError(cat("Loss '", output.loss.name(),
                                     "' needs labels, but a batch has inputs alone. Give "
                                     "(inputs, labels)."));
    }
    Tensor value = cast(output.loss(batch.y[i], outputs[i], batch.weights[i]), float32);
    if (value.rank() != 0) value = reduce_mean(value);
    if (output.tracker) output.tracker->update_state({}, value, {});
    parts.push_back(output.weighted ? value * output.weight : value);
  }
  for (const Tensor& loss : added) parts.push_back(cast(reduce_sum(loss), float32));
  for (const LayerImpl::Weight& weight : model_.collect_weights()) {
    if (weight.trainable && weight.regularizer.defined()) {
      parts.push_back(cast(weight.regularizer(weight.variable.read_value()), float32));
    }
  }
  if (parts.empty()) {
    throw FailedPreconditionError(cat("No loss to compute for model '", model_.name(),
                                      "'. Provide a `loss` to compile, or "
                                      "add_loss in a layer."));
  }
  return parts.size() == 1 ? parts.front() : add_n(parts);
}

namespace {

// How many examples a batch has: a constant where the shape is known.
Tensor batch_size(const Tensor& x) {
  if (x.rank() == 0) return Tensor(1.0f);
  const std::int64_t size = x.dim(0);
  if (size >= 0) return Tensor(static_cast<float>(size));
  return cast(reshape(slice(shape(x), {0}, {1}), IntList{}), float32);
}

}  // namespace

void Trainer::update_metrics(const Batch& batch, const std::vector<Tensor>& outputs,
                             const Tensor& loss) const {
  const Tensor size = batch_size(batch.x.front());
  loss_->add(loss * size, size);
  for (const Named& entry : metrics_) {
    const std::size_t i = entry.output;
    if (i >= batch.y.size()) continue;
    update_metric(*entry.metric, entry.name, batch.y[i], outputs[i],
                  entry.weighted ? batch.weights[i] : Tensor());
  }
}

namespace {

// In a fit with a random stream of its own (FitState) random ops are numbered within the step as it
// is traced, so that what they draw does not depend on which shapes were traced before.
class StepSeeds {
 public:
  StepSeeds() {
    ThreadContext& thread = thread_context();
    if (!thread.draws || thread.trace == nullptr) return;
    saved_ = std::exchange(thread.draws,
                           std::make_shared<RngPosition>(RngPosition::Stream(), 0, thread.trace));
  }
  ~StepSeeds() {
    if (saved_) thread_context().draws = std::move(saved_);
  }
  StepSeeds(const StepSeeds&) = delete;
  StepSeeds& operator=(const StepSeeds&) = delete;

 private:
  std::shared_ptr<RngPosition> saved_;
};

}  // namespace

void Trainer::compiled_train_step(const data::Element& element) {
  require_prepared(element, true);
  const StepSeeds seeds;
  std::optional<ActivationCollector> activations;
  if (observing_) activations.emplace();
  const LogitsScope logits;
  const MaskScope masks;
  const Batch batch = split(element);
  GradientTape tape({.watch_accessed_variables = false});
  for (const Variable& variable : trainable_) tape.watch(variable);
  const LossCollector collector;
  const std::vector<Tensor> outputs = forward(batch, true);
  const Tensor loss = total_loss(batch, outputs, collector.losses());
  const std::vector<Tensor> gradients =
      tape.gradient(options_.optimizer.scale_loss(loss), trainable_);
  options_.optimizer.apply(gradients, trainable_);
  update_metrics(batch, outputs, loss);
  if (!observing_) return;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined())
      observation_.gradients.emplace_back(trainable_[i].name(), gradients[i]);
  }
  observation_.activations = activations->activations();
}

void Trainer::compiled_test_step(const data::Element& element) {
  require_prepared(element, false);
  const LogitsScope logits;
  const MaskScope masks;
  const Batch batch = split(element);
  const LossCollector collector;
  const std::vector<Tensor> outputs = forward(batch, false);
  const Tensor loss = total_loss(batch, outputs, collector.losses());
  update_metrics(batch, outputs, loss);
}

Trainer::Batch Trainer::labelled(const TensorList& y, const Tensor& sample_weight) const {
  Batch batch = split(*batch_);
  if (!y.empty()) batch.y = y.tensors();
  if (sample_weight.defined()) batch.weights.assign(outputs_.size(), sample_weight);
  return batch;
}

Tensor Trainer::compute_loss(const TensorList& y, const TensorList& y_pred,
                             const Tensor& sample_weight) {
  require_prepared(*batch_, false);
  std::vector<Tensor> outputs = y_pred.tensors();
  for (Tensor& output : outputs) output = predictions_in_full_precision(output);
  return total_loss(labelled(y, sample_weight), outputs, model_.added_losses());
}

void Trainer::update_metrics(const TensorList& y, const TensorList& y_pred, const Tensor& loss,
                             const Tensor& sample_weight) {
  require_prepared(*batch_, false);
  update_metrics(labelled(y, sample_weight), y_pred.tensors(), loss);
}

template <class Visit>
void Trainer::each_metric(const Visit& visit) const {
  visit("loss", *loss_);
  for (const Output& output : outputs_) {
    if (output.tracker) visit(output.tracker->name(), *output.tracker);
  }
  for (const Named& entry : metrics_) visit(entry.name, *entry.metric);
}

Logs Trainer::results() const {
  std::map<std::string, std::optional<double>> values;
  if (last_results_ && !last_results_->names.empty()) {
    for (std::size_t i = 0; i < last_results_->values.size(); ++i)
      values[last_results_->names[i]] = value_of(scalar_of(last_results_->values[i]));
  } else {
    each_metric([&](const std::string& name, const MetricImpl& metric) {
      values[name] = value_of(scalar_of(metric.result()));
    });
  }
  return logs_of(values);
}

void Trainer::reset() const {
  loss_->reset_state();
  for (const Output& output : outputs_) {
    if (output.tracker) output.tracker->reset_state();
  }
  for (const Named& entry : metrics_) entry.metric->reset_state();
  for (const Metric& metric : model_.metrics()) metric.reset_state();
}

const MetricImpl* Trainer::find_metric(const std::string& name) const {
  if (name == "loss") return loss_.get();
  for (const Output& output : outputs_) {
    if (output.tracker && output.tracker->name() == name) return output.tracker.get();
  }
  for (const Named& entry : metrics_) {
    if (entry.name == name) return entry.metric.get();
  }
  return nullptr;
}

}  // namespace tandem::keras::internal
