#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/keras/call_options.h"
#include "tandem/keras/config.h"
#include "tandem/keras/dtype_policy.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

class LayerImpl;

/// `layer.trainable`: whether training changes the weights, here and in the layers within. Read as
/// a bool, set by assignment; a model must be compiled again afterwards.
///
///     base.trainable = false;
///     if (base.trainable) …
class TANDEM_EXPORT TrainableProperty {
 public:
  TrainableProperty(const TrainableProperty&) = default;
  operator bool() const { return get(); }
  bool operator()() const { return get(); }
  const TrainableProperty& operator=(bool value) const {
    set(value);
    return *this;
  }
  TrainableProperty& operator=(const TrainableProperty& other) {
    set(other.get());
    return *this;
  }

 private:
  friend class Layer;
  explicit TrainableProperty(std::shared_ptr<LayerImpl> impl) : impl_(std::move(impl)) {}
  bool get() const;
  void set(bool value) const;

  std::shared_ptr<LayerImpl> impl_;
};

/// A function of tensors with weights of its own. A handle: copies are the same layer.
///
/// The classes of tandem/keras/layers make layers (`Dense(32)`), which go into a Sequential, or are
/// called: with tensors they compute, with KerasTensors they become part of a functional model.
/// Weights are made at the first call, when the shape of the input is known. A layer may be used in
/// several places and models, which then share its weights. To write a layer of your own, derive
/// from LayerImpl (tandem/keras/layer_impl.h). Not thread-safe while it is being built or trained.
///
///     td::keras::Dense dense(10, {.activation = "relu"});
///     td::Tensor y = dense(x);                       // builds, computes
///     auto z = dense(td::keras::Input({28}));        // a KerasTensor [None, 10]
class TANDEM_EXPORT Layer {
 public:
  /// No layer.
  Layer() : trainable(nullptr) {}
  explicit Layer(std::shared_ptr<LayerImpl> impl);
  /// The layer that made it, so that Sequential{Input({784}), …} works.
  Layer(const KerasTensor& tensor);
  Layer(const Layer&) = default;
  Layer(Layer&&) noexcept = default;
  // Another layer, whose `trainable` is its own.
  Layer& operator=(const Layer& other);
  Layer& operator=(Layer&& other) noexcept;

  bool defined() const noexcept { return impl_ != nullptr; }

  // Calls. Errors of the ops within get a line that names the layer and its inputs.
  Tensor operator()(const Tensor& input, const CallOptions& options = {}) const;
  /// For layers of several inputs; throws InvalidArgumentError if there is not exactly one output.
  Tensor operator()(const std::vector<Tensor>& inputs, const CallOptions& options = {}) const;
  KerasTensor operator()(const KerasTensor& input, const CallOptions& options = {}) const;
  KerasTensor operator()(const std::vector<KerasTensor>& inputs,
                         const CallOptions& options = {}) const;
  /// All outputs.
  std::vector<Tensor> outputs(const std::vector<Tensor>& inputs,
                              const CallOptions& options = {}) const;
  std::vector<KerasTensor> outputs(const std::vector<KerasTensor>& inputs,
                                   const CallOptions& options = {}) const;
  /// What it was given and what it made when it was first called with KerasTensors, for a model
  /// that ends there: `Model(model.inputs(), model.get_layer("conv5").output())`. Throws
  /// FailedPreconditionError if it was not called, or no model holds the call any more, and
  /// InvalidArgumentError where there are several.
  KerasTensor input() const;
  KerasTensor output() const;

  const std::string& name() const;
  /// "Dense"
  const std::string& class_name() const;
  Config config() const;
  /// In which dtypes it computes and keeps its weights.
  const DTypePolicy& dtype_policy() const;
  DType compute_dtype() const { return dtype_policy().compute_dtype(); }
  DType variable_dtype() const { return dtype_policy().variable_dtype(); }
  /// "Dense(name='dense', units=10, …)"
  std::string describe() const;

  /// Makes the weights for inputs of this shape; unknown sizes are -1. Does nothing if they exist.
  void build(const PartialShape& input_shape) const;
  bool built() const;
  /// The shape of the result for inputs of this shape, with all sizes that can be known.
  PartialShape compute_output_shape(const PartialShape& input_shape) const;

  /// The mask of the result, if it has one, for an input and its mask (undefined: none): what the
  /// layers of a model get by themselves, and calls one by one pass on in CallOptions::mask.
  Tensor compute_mask(const Tensor& input, const Tensor& mask = {}) const;

  /// The weights in Keras' order. Those of a layer that is not trainable count as non-trainable.
  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_weights() const;
  std::vector<Variable> non_trainable_weights() const;
  /// The weights, then the states of random layers (Dropout, augmentation), which are no weights:
  /// with them a resumed training draws the numbers that it would have drawn. What optimizers and
  /// metrics keep is not among them.
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const { return trainable_weights(); }
  std::vector<Variable> non_trainable_variables() const;
  /// The values of `weights()`.
  std::vector<Tensor> get_weights() const;
  /// Throws InvalidArgumentError unless number, shapes and dtypes fit.
  void set_weights(const std::vector<Tensor>& values) const;
  /// Numbers in the weights. Throws FailedPreconditionError before the layer is built.
  std::int64_t count_params() const;

  /// Whether training changes the weights, here and in the layers within. A model must be compiled
  /// again afterwards.
  TrainableProperty trainable;
  /// `trainable = value`
  void set_trainable(bool value) const { trainable = value; }

  /// What add_loss received in the last call, here and in the layers within, then the penalties of
  /// the weights' regularizers: scalars.
  std::vector<Tensor> losses() const;
  /// Adds a scalar to the loss, for use while the layer is called: in a Lambda, say.
  void add_loss(const Tensor& loss) const;

  // ---- For models and layers. ----
  const std::shared_ptr<LayerImpl>& impl() const;

 private:
  std::shared_ptr<LayerImpl> impl_;
};

}  // namespace tandem::keras
