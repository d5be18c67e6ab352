#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"
#include "tandem/data/structure.h"
#include "tandem/keras/compile_options.h"
#include "tandem/keras/fit_options.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/logs.h"
#include "tandem/keras/save_options.h"
#include "tandem/keras/tensor_list.h"

namespace tandem::keras {

class ModelImpl;

/// One KerasTensor, several in braces, or by names, which are then those of the model's inputs or
/// outputs: `{{"image", image}, {"age", age}}`.
class KerasTensors {
 public:
  using Named = std::pair<const std::string, KerasTensor>;

  KerasTensors(KerasTensor tensor) : tensors_{std::move(tensor)} {}
  KerasTensors(std::initializer_list<KerasTensor> tensors) : tensors_(tensors) {}
  KerasTensors(std::vector<KerasTensor> tensors) : tensors_(std::move(tensors)) {}
  KerasTensors(std::initializer_list<Named> by_name)
      : KerasTensors(std::map<std::string, KerasTensor>(by_name)) {}
  /// In alphabetical order, as Keras flattens dictionaries.
  KerasTensors(const std::map<std::string, KerasTensor>& by_name) {
    for (const auto& [name, tensor] : by_name) {
      names_.push_back(name);
      tensors_.push_back(tensor);
    }
  }
  /// In this order, with a name for each or with none.
  KerasTensors(std::vector<KerasTensor> tensors, std::vector<std::string> names)
      : tensors_(std::move(tensors)), names_(std::move(names)) {}
  const std::vector<KerasTensor>& tensors() const { return tensors_; }
  /// One for each if they were given by name; else empty.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<KerasTensor> tensors_;
  std::vector<std::string> names_;
};

/// `model.stop_training`: whether fit ends after the batch under way. Read as a bool, set by
/// assignment, by a callback or a train_step; fit begins with false.
///
///     if (logs["loss"] < 0.01) model().stop_training = true;   // in a Callback
class TANDEM_EXPORT StopTrainingProperty {
 public:
  StopTrainingProperty(const StopTrainingProperty&) = default;
  operator bool() const;
  const StopTrainingProperty& operator=(bool value) const {
    set(value);
    return *this;
  }
  StopTrainingProperty& operator=(const StopTrainingProperty& other) {
    set(static_cast<bool>(other));
    return *this;
  }
  /// `= true`
  void operator()() const { set(true); }

 private:
  friend class Model;
  explicit StopTrainingProperty(std::shared_ptr<ModelImpl> impl) : impl_(std::move(impl)) {}
  void set(bool value) const;
  ModelImpl& impl() const;

  std::shared_ptr<ModelImpl> impl_;
};

struct ModelOptions {
  String name = {};
  bool trainable = true;
};

/// A model by the names of its arguments: `Model({.inputs = {a, b}, .outputs = y, .name = "m"})`.
struct ModelArguments {
  KerasTensors inputs;
  KerasTensors outputs;
  String name = {};
  bool trainable = true;
};

struct SummaryOptions {
  int line_length = 0;  ///< 0: what fits the terminal
  bool expand_nested = false;
  bool show_trainable = false;
};

/// A layer that can be trained. A handle: copies are the same model.
///
///     auto x = td::keras::Input({28, 28, 1});
///     auto y = td::keras::Dense(10, {.activation = "softmax"})(td::keras::Flatten()(x));
///     td::keras::Model model(x, y);
///     model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy",
///                    .metrics = {"accuracy"}});
///     model.fit(train.batch(32), {.epochs = 5, .validation_data = test.batch(256)});
///
/// Elements of datasets are batches: the inputs, then the labels, then perhaps sample weights (one
/// tensor for all outputs, or one for each). Each kind of step is traced once and then runs as one
/// graph. Trained by one thread at a time.
class TANDEM_EXPORT Model : public Layer {
 public:
  /// No model.
  Model() : stop_training(nullptr) {}
  /// What lies between inputs and outputs. Throws InvalidArgumentError if an output depends on an
  /// Input that is not among the inputs.
  Model(const KerasTensors& inputs, const KerasTensors& outputs, const String& name = "");
  Model(const KerasTensors& inputs, const KerasTensors& outputs, const ModelOptions& options)
      : Model(inputs, outputs, options.name) {
    if (!options.trainable) trainable = false;
  }
  explicit Model(const ModelArguments& arguments)
      : Model(arguments.inputs, arguments.outputs,
              ModelOptions{.name = arguments.name, .trainable = arguments.trainable}) {}
  explicit Model(std::shared_ptr<ModelImpl> impl);
  Model(const Model&) = default;
  Model(Model&&) noexcept = default;
  // Another model, whose properties are its own.
  Model& operator=(const Model& other);
  Model& operator=(Model&& other) noexcept;

  using Layer::operator();
  /// With inputs by the names of `input_names`.
  Tensor operator()(std::initializer_list<data::TensorMap::value_type> inputs,
                    const CallOptions& options = {}) const;
  template <std::derived_from<data::TensorMap::Base> Map>  // braces are for the others
  Tensor operator()(const Map& inputs, const CallOptions& options = {}) const {
    return call_by_name(inputs, options);
  }

  /// Chooses how to train: optimizer, losses, metrics; what was gathered before is forgotten.
  void compile(const CompileOptions& options) const;

  /// Trains, and returns the logs of each epoch. FailedPreconditionError before compile;
  /// InvalidArgumentError if there are no data, or they do not fit.
  History fit(const data::Dataset& dataset, const FitOptions& options = {}) const;
  History fit(const TensorList& x, const TensorList& y, const FitOptions& options = {}) const;
  /// Loss and metrics.
  Logs evaluate(const data::Dataset& dataset, const EvaluateOptions& options = {}) const;
  Logs evaluate(const TensorList& x, const TensorList& y,
                const EvaluateOptions& options = {}) const;
  /// The output for all examples; several outputs: see predict_all and predict_by_name.
  Tensor predict(const data::Dataset& dataset, const PredictOptions& options = {}) const;
  Tensor predict(const TensorList& x, const PredictOptions& options = {}) const;
  std::vector<Tensor> predict_all(const data::Dataset& dataset,
                                  const PredictOptions& options = {}) const;
  std::vector<Tensor> predict_all(const TensorList& x, const PredictOptions& options = {}) const;
  /// All outputs by the names of `output_names`: what Keras' predict returns of a model whose
  /// outputs are a dictionary.
  data::TensorMap predict_by_name(const data::Dataset& dataset,
                                  const PredictOptions& options = {}) const;
  data::TensorMap predict_by_name(const TensorList& x, const PredictOptions& options = {}) const;

  // One batch, without callbacks or printing. Metrics are of this batch alone.
  Logs train_on_batch(const TensorList& x, const TensorList& y,
                      const TrainOnBatchOptions& options = {}) const;
  Logs test_on_batch(const TensorList& x, const TensorList& y,
                     const Tensor& sample_weight = {}) const;
  Tensor predict_on_batch(const TensorList& x) const;

  /// Layers, shapes and numbers of parameters, as Keras prints them.
  void summary(const SummaryOptions& options = {}) const;
  std::string summary_text(const SummaryOptions& options = {}) const;

  /// Writes the weights as a checkpoint (`path` is what the names of its files begin with) that
  /// TensorFlow reads: tf.train.Checkpoint(model=model).restore(path) of an equal model of Keras.
  /// A path that ends in ".weights.h5" becomes a file of Keras 3 (model.load_weights), one that
  /// ends in ".safetensors" has the weights by their names. Throws InvalidArgumentError for a
  /// folder, and for names of other formats of Keras (".keras").
  void save_weights(const std::string& path, const SaveWeightsOptions& options = {}) const;
  void save_weights(const char* path, const SaveWeightsOptions& options = {}) const {
    save_weights(tandem::internal::name_argument(path, "the path of weights"), options);
  }
  /// Reads what save_weights or tf.train.Checkpoint(model=model) wrote, of a model of equal layers;
  /// by the path's ending also Keras' `.weights.h5` and `.keras`, and safetensors.
  /// Throws NotFoundError for weights that the checkpoint lacks, InvalidArgumentError where shapes
  /// or dtypes differ or it holds others besides, DataLossError if it is damaged; then no weight
  /// has changed.
  void load_weights(const std::string& path, const LoadWeightsOptions& options = {}) const;
  void load_weights(const char* path, const LoadWeightsOptions& options = {}) const {
    load_weights(tandem::internal::name_argument(path, "the path of weights"), options);
  }
  /// Writes architecture, weights, and how the model was compiled, with what the optimizer
  /// remembers, to a `.keras` file, which Keras 3 loads: keras.models.load_model(path). Read again
  /// by models::load_model (serialization.h). Throws UnimplementedError for layers of your own that
  /// are not registered; losses and metrics that are functions of your own leave out how it was
  /// compiled, with a warning.
  void save(const std::string& path) const;
  void save(const char* path) const {
    save(tandem::internal::name_argument(path, "the path of a model"));
  }
  /// The architecture alone, as Keras' to_json; model_from_json (serialization.h) reads it.
  std::string to_json() const;

  /// Writes what `predict` computes as a graph of TensorFlow (a GraphDef; text if the name ends in
  /// .pbtxt): a placeholder for each input, with unknown batch size, and the weights as constants.
  /// `td run` and TensorFlow run it.
  ExportedModel export_graph(const String& path, const ExportGraphOptions& options = {}) const;

  /// What the model is fed and what comes out, for another model of the same layers; none where it
  /// is not known: before a Sequential is built, or if `call` is the user's own.
  std::vector<KerasTensor> inputs() const;
  std::vector<KerasTensor> outputs() const;
  using Layer::outputs;

  /// What data, losses and metrics may be named by: the names that the model was given its inputs
  /// and outputs by, else those of the Inputs and of the layers that make the outputs. A model
  /// whose `call` is your own has no input names, unless its class says them.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  /// The shape of the only input or output, with the batch axis: [-1, 28, 28]. Throws
  /// InvalidArgumentError if there are several, FailedPreconditionError where it is not known.
  PartialShape input_shape() const;
  PartialShape output_shape() const;
  /// … of each.
  std::vector<PartialShape> input_shapes() const;
  std::vector<PartialShape> output_shapes() const;

  std::vector<Layer> layers() const;
  /// Throws NotFoundError naming the layers that there are.
  Layer get_layer(const std::string& name) const;
  Layer get_layer(const char* name) const {
    return get_layer(tandem::internal::name_argument(name, "the name of a layer"));
  }
  /// The layer at this index of `layers()`. Throws InvalidArgumentError if there are fewer.
  Layer get_layer(int index) const;
  /// The optimizer of the compiled model; FailedPreconditionError before `compile`.
  const Optimizer& optimizer() const;
  /// Whether fit ends after the batch under way.
  StopTrainingProperty stop_training;

  ModelImpl& model_impl() const;

 private:
  Tensor call_by_name(const data::TensorMap::Base& inputs, const CallOptions& options) const;
};

/// Layers one after the other.
///
///     td::keras::Sequential model{td::keras::Input({784}), td::keras::Dense(10)};
///
/// With an Input layers are built as they come, without one at the first use, or by build(shape
/// with batch axis).
class TANDEM_EXPORT Sequential : public Model {
 public:
  Sequential(std::initializer_list<Layer> layers = {}, const String& name = "");
  explicit Sequential(const std::vector<Layer>& layers, const String& name = "");

  /// Puts a layer behind the others. If the model is built, or begins with an Input, it is built at
  /// once; a compiled model then counts as recompiled, with a new optimizer if that was named.
  /// Functions and models that used this one before keep what they traced. Throws
  /// InvalidArgumentError, and changes nothing, if the name of the layer is taken, if it does not
  /// fit, if it is an Input and not the first, or if what the model was compiled with does not fit
  /// its new output.
  void add(const Layer& layer) const;
  /// Takes the last layer away and returns it; an Input stays. Throws FailedPreconditionError if
  /// there is none, and, as `add`, InvalidArgumentError if what the model was compiled with names
  /// outputs that it has no longer; then nothing has changed.
  Layer pop() const;
};

}  // namespace tandem::keras
