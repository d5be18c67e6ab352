#include "tandem/keras/model.h"

#include <algorithm>
#include <iostream>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/keras/internal/fit_loop.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/predictor.h"
#include "tandem/keras/internal/progress.h"
#include "tandem/keras/internal/sequential_impl.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/array_ops.h"

namespace tandem::keras {

using internal::BatchReader;
using internal::Examples;
using internal::Trainer;

ModelImpl::ModelImpl(std::string class_name, LayerSettings settings)
    : LayerImpl(std::move(class_name), std::move(settings)) {}
ModelImpl::~ModelImpl() = default;

std::shared_ptr<internal::Predictor> ModelImpl::predictor() {
  {
    const std::lock_guard lock(predictor_mutex_);
    if (predictor_) return predictor_;
  }
  auto made = std::make_shared<internal::Predictor>(*this);
  const std::lock_guard lock(predictor_mutex_);
  if (!predictor_) predictor_ = std::move(made);
  return predictor_;
}

namespace {

[[noreturn]] void throw_not_compiled(const ModelImpl& model, const char* what) {
  throw FailedPreconditionError(cat("You must call `compile()` before ", what, " of model '",
                                    model.name(),
                                    "': model.compile({.optimizer = \"adam\", .loss = …})."));
}

}  // namespace

Trainer& ModelImpl::stepping_trainer() const {
  if (!stepping_) {
    throw FailedPreconditionError(cat("Model '", name(),
                                      "': steps run within fit, evaluate, train_on_batch and ",
                                      "test_on_batch, and so do compute_loss and update_metrics."));
  }
  return *stepping_;
}
ModelImpl::StepResults ModelImpl::train_step(const data::Element& batch) {
  stepping_trainer().compiled_train_step(batch);
  return {};
}
ModelImpl::StepResults ModelImpl::test_step(const data::Element& batch) {
  stepping_trainer().compiled_test_step(batch);
  return {};
}
std::vector<std::string> ModelImpl::input_names() const {
  std::vector<std::string> names;
  for (const KerasTensor& input : input_tensors()) names.push_back(input.name());
  return names;
}
std::vector<Tensor> ModelImpl::predict_step(const std::vector<Tensor>& inputs) {
  return run(inputs, CallOptions{.training = false});
}
const Optimizer& ModelImpl::optimizer() const {
  if (stepping_) return stepping_->optimizer();
  if (!trainer_) throw_not_compiled(*this, "using the optimizer");
  return trainer_->optimizer();
}
std::vector<Variable> ModelImpl::trainable_variables() const {
  std::vector<Variable> all;
  for (const Weight& weight : collect_weights())
    if (weight.trainable) all.push_back(weight.variable);
  return all;
}
Tensor ModelImpl::compute_loss(const TensorList& y, const TensorList& y_pred,
                               const Tensor& sample_weight) {
  return stepping_trainer().compute_loss(y, y_pred, sample_weight);
}
void ModelImpl::update_metrics(const TensorList& y, const TensorList& y_pred, const Tensor& loss,
                               const Tensor& sample_weight) {
  stepping_trainer().update_metrics(y, y_pred, loss, sample_weight);
}

void ModelImpl::layers_changed() {
  if (trainer_) trainer_ = std::make_shared<Trainer>(*this, trainer_->given());
  const std::lock_guard lock(predictor_mutex_);
  predictor_.reset();
}

Model::Model(const KerasTensors& inputs, const KerasTensors& outputs, const String& name)
    : Model(std::shared_ptr<ModelImpl>(
          std::make_shared<internal::FunctionalImpl>(inputs, outputs, name))) {}
Model::Model(std::shared_ptr<ModelImpl> impl) : Layer(impl), stop_training(std::move(impl)) {}
Model& Model::operator=(const Model& other) {
  Layer::operator=(other);
  stop_training.impl_ = other.stop_training.impl_;
  return *this;
}
Model& Model::operator=(Model&& other) noexcept {
  Layer::operator=(std::move(other));
  stop_training.impl_ = std::move(other.stop_training.impl_);
  return *this;
}

ModelImpl& StopTrainingProperty::impl() const {
  Layer(impl_).impl();  // throws if there is none
  return *impl_;
}
StopTrainingProperty::operator bool() const { return impl().stop_training; }
void StopTrainingProperty::set(bool value) const { impl().stop_training = value; }

ModelImpl& Model::model_impl() const {
  // A Model is only ever made with a ModelImpl.
  return static_cast<ModelImpl&>(*impl());
}

void Model::compile(const CompileOptions& options) const {
  model_impl().set_trainer(std::make_shared<Trainer>(model_impl(), options));
}

namespace {

std::shared_ptr<Trainer> trainer_of(const Model& model, const char* what) {
  std::shared_ptr<Trainer> trainer = model.model_impl().trainer();
  if (!trainer) {
    throw FailedPreconditionError(cat("You must call `compile()` before calling `", what,
                                      "()` of model '", model.name(),
                                      "': model.compile({.optimizer = \"adam\", .loss = …})."));
  }
  return trainer;
}

void require_dataset(const data::Dataset& dataset, const char* what) {
  if (!dataset.defined()) throw InvalidArgumentError(cat(what, ": the dataset is undefined."));
}

data::Dataset validation_of(const ModelImpl& model, const FitOptions& options) {
  const ValidationData& given = options.validation_data;
  if (!given.defined() || given.dataset().defined()) return given.dataset();
  const Examples examples = internal::arrange(model, {given.x(), given.y(), given.sample_weight()});
  check_examples(examples);
  return batches_of(examples, options.validation_batch_size.value_or(options.batch_size), false);
}

}  // namespace

namespace {

// Tensors beyond the model's inputs would be taken for labels and weights.
void check_counts(const ModelImpl& model, const Examples& examples, const char* what) {
  const auto check = [&](const char* name, std::size_t given, std::size_t wanted,
                         const char* things) {
    if (given == wanted) return;
    throw InvalidArgumentError(cat(what, ": model '", model.name(), "' has ", wanted, " ", things,
                                   ", but ", given, " tensors are given for ", name, "."));
  };
  check("x", examples.x.tensors().size(), static_cast<std::size_t>(model.num_inputs()), "input(s)");
  if (!examples.y.tensors().empty())
    check("y", examples.y.tensors().size(), model.output_names().size(), "output(s)");
}

}  // namespace

History Model::fit(const data::Dataset& dataset, const FitOptions& options) const {
  const auto trainer = trainer_of(*this, "fit");
  require_dataset(dataset, "fit");
  if (options.validation_split != 0) {
    throw InvalidArgumentError(
        "fit: validation_split is for tensors. For a dataset give validation_data, for example by "
        "dataset.split(0.8).");
  }
  if (options.sample_weight.defined()) {
    throw InvalidArgumentError(
        "fit: sample_weight is for tensors. Put the weights into the dataset: (x, y, weight).");
  }
  return internal::FitLoop(*this, trainer, dataset, validation_of(model_impl(), options), options)
      .run();
}

History Model::fit(const TensorList& x, const TensorList& y, const FitOptions& options) const {
  const auto trainer = trainer_of(*this, "fit");
  Examples examples = internal::arrange(model_impl(), {x, y, options.sample_weight});
  check_examples(examples);
  check_counts(model_impl(), examples, "fit");
  if (!options.class_weight.empty() && options.sample_weight.defined()) {
    throw InvalidArgumentError("You cannot `class_weight` and `sample_weight` at the same time.");
  }
  data::Dataset validation = validation_of(model_impl(), options);
  if (options.validation_split != 0 && !validation.defined()) {
    auto [first, last] = split_examples(examples, options.validation_split);
    examples = std::move(first);
    validation =
        batches_of(last, options.validation_batch_size.value_or(options.batch_size), false);
  }
  const data::Dataset batches = batches_of(examples, options.batch_size, options.shuffle);
  return internal::FitLoop(*this, trainer, batches, validation, options).run();
}

Logs Model::evaluate(const data::Dataset& dataset, const EvaluateOptions& options) const {
  const auto trainer = trainer_of(*this, "evaluate");
  require_dataset(dataset, "evaluate");
  BatchReader reader(dataset, options.steps, model_impl());
  Model self = *this;
  const Verbose verbose = internal::resolve(options.verbose);
  const CallbackList callbacks(options.callbacks, self, {.steps = reader.steps()});
  internal::Progress progress(verbose, reader.steps());
  trainer->reset();
  callbacks.notify([](Callback& c) { c.on_test_begin(); });
  const Logs logs = internal::test_pass(*trainer, reader, callbacks, [&](std::int64_t step) {
    progress.step_done(step);
    if (progress.due()) progress.draw(step, trainer->results());
  });
  progress.finish(reader.count(), logs);
  callbacks.notify([&](Callback& c) { c.on_test_end(logs); });
  return logs;
}

Logs Model::evaluate(const TensorList& x, const TensorList& y,
                     const EvaluateOptions& options) const {
  const Examples examples = internal::arrange(model_impl(), {x, y, options.sample_weight});
  check_examples(examples);
  check_counts(model_impl(), examples, "evaluate");
  return evaluate(batches_of(examples, options.batch_size, false), options);
}

std::vector<Tensor> Model::predict_all(const data::Dataset& dataset,
                                       const PredictOptions& options) const {
  require_dataset(dataset, "predict");
  BatchReader reader(dataset, options.steps, model_impl());
  Model self = *this;
  const Verbose verbose = internal::resolve(options.verbose);
  const CallbackList callbacks(options.callbacks, self, {.steps = reader.steps()});
  internal::Progress progress(verbose, reader.steps());
  const std::shared_ptr<internal::Predictor> predictor = model_impl().predictor();
  callbacks.notify([](Callback& c) { c.on_predict_begin(); });
  std::vector<std::vector<Tensor>> parts;  // by output, then by batch
  data::Element batch;
  std::int64_t step = 0;
  for (reader.begin(); reader.next(batch);) {
    callbacks.notify([&](Callback& c) { c.on_predict_batch_begin(step); });
    std::vector<Tensor> outputs = predictor->predict(batch);
    parts.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(std::move(outputs[i]));
    callbacks.notify([&](Callback& c) { c.on_predict_batch_end(step); });
    progress.step_done(++step);
    if (progress.due()) progress.draw(step, {});
  }
  if (step == 0)
    throw InvalidArgumentError("The dataset to predict for is empty: it gave no batch.");
  progress.finish(step, {});
  callbacks.notify([](Callback& c) { c.on_predict_end(); });
  std::vector<Tensor> whole;
  for (std::vector<Tensor>& batches : parts)
    whole.push_back(batches.size() == 1 ? batches.front() : concat(batches, 0));
  return whole;
}

std::vector<Tensor> Model::predict_all(const TensorList& x, const PredictOptions& options) const {
  const Examples examples = internal::arrange(model_impl(), {x, {}, {}});
  check_examples(examples);
  check_counts(model_impl(), examples, "predict");
  return predict_all(batches_of(examples, options.batch_size, false), options);
}

namespace {

Tensor only_output(std::vector<Tensor> outputs, const Model& model) {
  if (outputs.size() != 1) {
    throw InvalidArgumentError(cat("Model '", model.name(), "' has ", outputs.size(),
                                   " outputs. Use predict_all to get them in order, or "
                                   "predict_by_name."));
  }
  return std::move(outputs.front());
}

}  // namespace

Tensor Model::predict(const data::Dataset& dataset, const PredictOptions& options) const {
  return only_output(predict_all(dataset, options), *this);
}
Tensor Model::predict(const TensorList& x, const PredictOptions& options) const {
  return only_output(predict_all(x, options), *this);
}
namespace {

data::TensorMap named(std::vector<Tensor> outputs, const Model& model) {
  const std::vector<std::string> names = model.output_names();
  if (names.size() != outputs.size()) {
    throw InvalidArgumentError(cat("Model '", model.name(), "' gave ", outputs.size(),
                                   " outputs, but has the names ", internal::join(names),
                                   ": override output_names of its ModelImpl."));
  }
  data::TensorMap map;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!map.emplace(names[i], std::move(outputs[i])).second) {
      throw InvalidArgumentError(
          cat("Model '", model.name(), "' has two outputs of the name '", names[i],
              "'. Use predict_all, or make the model with a dictionary of outputs."));
    }
  }
  return map;
}

}  // namespace

data::TensorMap Model::predict_by_name(const data::Dataset& dataset,
                                       const PredictOptions& options) const {
  return named(predict_all(dataset, options), *this);
}
data::TensorMap Model::predict_by_name(const TensorList& x, const PredictOptions& options) const {
  return named(predict_all(x, options), *this);
}
Tensor Model::predict_on_batch(const TensorList& x) const {
  const Examples examples = internal::arrange(model_impl(), {x, {}, {}});
  check_examples(examples);
  return only_output(model_impl().predictor()->predict(examples.x.tensors()), *this);
}

Logs Model::train_on_batch(const TensorList& x, const TensorList& y,
                           const TrainOnBatchOptions& options) const {
  const auto trainer = trainer_of(*this, "train_on_batch");
  Examples examples = internal::arrange(model_impl(), {x, y, options.sample_weight});
  if (!options.class_weight.empty()) {
    if (options.sample_weight.defined() || y.tensors().size() != 1) {
      throw InvalidArgumentError(
          "Arguments `sample_weight` and `class_weight` cannot be specified at the same time, and "
          "class weights need a single output.");
    }
    examples.sample_weight =
        internal::weights_of_classes(y.tensors().front(), options.class_weight);
  }
  check_examples(examples);
  return trainer->train_and_report(examples.components());
}

Logs Model::test_on_batch(const TensorList& x, const TensorList& y,
                          const Tensor& sample_weight) const {
  const auto trainer = trainer_of(*this, "test_on_batch");
  const Examples examples = internal::arrange(model_impl(), {x, y, sample_weight});
  check_examples(examples);
  trainer->reset();
  trainer->test(examples.components());
  return trainer->results();
}

void Model::summary(const SummaryOptions& options) const {
  std::cout << summary_text(options) << std::flush;
}

std::vector<KerasTensor> Model::inputs() const { return impl()->symbolic_inputs(); }
std::vector<KerasTensor> Model::outputs() const { return impl()->symbolic_outputs(); }

std::vector<std::string> Model::input_names() const { return model_impl().input_names(); }
std::vector<std::string> Model::output_names() const { return model_impl().output_names(); }

namespace {

std::vector<PartialShape> shapes_of(const std::vector<KerasTensor>& tensors, const Model& model) {
  if (tensors.empty()) {
    throw FailedPreconditionError(
        cat("The shapes of model '", model.name(), "' are not known",
            dynamic_cast<const internal::SequentialImpl*>(model.impl().get())
                ? ": it is not built yet. Begin it with an Input, or call build(shape)."
                : ", since its `call` is a program: compute_output_shape(shape) infers them."));
  }
  std::vector<PartialShape> shapes;
  for (const KerasTensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

PartialShape only_shape(std::vector<PartialShape> shapes, const Model& model, const char* things) {
  if (shapes.size() == 1) return std::move(shapes.front());
  throw InvalidArgumentError(cat("Model '", model.name(), "' has ", shapes.size(), " ", things,
                                 "s: use ", things, "_shapes."));
}

}  // namespace

std::vector<PartialShape> Model::input_shapes() const { return shapes_of(inputs(), *this); }
std::vector<PartialShape> Model::output_shapes() const { return shapes_of(outputs(), *this); }
PartialShape Model::input_shape() const { return only_shape(input_shapes(), *this, "input"); }
PartialShape Model::output_shape() const { return only_shape(output_shapes(), *this, "output"); }

Tensor Model::operator()(std::initializer_list<data::TensorMap::value_type> inputs,
                         const CallOptions& options) const {
  return call_by_name(inputs, options);
}
Tensor Model::call_by_name(const data::TensorMap::Base& inputs, const CallOptions& options) const {
  const std::vector<std::string> names = input_names();
  if (names.empty()) {
    throw InvalidArgumentError(cat("Model '", name(),
                                   "' has no names of inputs: call it with a list, or override ",
                                   "input_names of its ModelImpl."));
  }
  const Examples examples = internal::arrange(model_impl(), {inputs, {}, {}});
  for (const auto& [given, tensor] : inputs) {
    if (std::find(names.begin(), names.end(), given) != names.end()) continue;
    throw InvalidArgumentError(cat("Model '", name(), "' has no input '", given,
                                   "'. Its inputs are: ", internal::join(names), "."));
  }
  return (*this)(examples.x.tensors(), options);
}

std::vector<Layer> Model::layers() const { return model_impl().layers(); }

Layer Model::get_layer(const std::string& name) const {
  std::vector<std::string> names;
  for (const Layer& layer : layers()) {
    if (layer.name() == name) return layer;
    names.push_back(layer.name());
  }
  throw NotFoundError(cat("No such layer: '", name, "'. Model '", this->name(), "' has the layers ",
                          internal::join(names), "."));
}

Layer Model::get_layer(int index) const {
  const std::vector<Layer> all = layers();
  if (index < 0 || static_cast<std::size_t>(index) >= all.size()) {
    throw InvalidArgumentError(cat("Was asked to retrieve layer at index ", index, " but model '",
                                   this->name(), "' only has ", all.size(), " layers."));
  }
  return all[static_cast<std::size_t>(index)];
}

const Optimizer& Model::optimizer() const { return trainer_of(*this, "optimizer")->optimizer(); }

namespace internal {

Predictor::Predictor(ModelImpl& model)
    : model_(model),
      function_([this](const std::vector<Tensor>& inputs) { return model_.predict_step(inputs); },
                {.name = "predict_step"}) {}

std::vector<Tensor> Predictor::predict(const data::Element& batch) const {
  const auto count = static_cast<std::size_t>(model_.num_inputs());
  if (batch.size() < count) {
    throw InvalidArgumentError(cat("Model '", model_.name(), "' has ", count,
                                   " inputs, but a batch has ", batch.size(), " tensor(s)."));
  }
  std::vector<Tensor> inputs(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(count));
  return function_(std::move(inputs));
}

}  // namespace internal
}  // namespace tandem::keras
