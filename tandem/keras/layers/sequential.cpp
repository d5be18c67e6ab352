#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/input_layer_impl.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/operation_order.h"
#include "tandem/keras/internal/rank_adaption.h"
#include "tandem/keras/internal/sequential_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras {
namespace internal {

void SequentialImpl::add_input(std::shared_ptr<InputLayerImpl> input) {
  if (input_) {
    throw InvalidArgumentError(cat("Sequential model '", name(), "' takes inputs of shape ",
                                   shape_text(input_->batch_shape()),
                                   " already: no other Input can be added to it."));
  }
  if (!layers_.empty()) {
    throw InvalidArgumentError(cat("Sequential model '", name(),
                                   "': an Input must be the first of its layers, and the "
                                   "only one."));
  }
  input_ = std::move(input);
  input_is_given_ = true;
}

namespace {

// Whether `layer` is `model`, or holds it.
bool holds(const Layer& layer, const LayerImpl& model) {
  if (layer.impl().get() == &model) return true;
  const std::vector<Layer> inner = layer.impl()->sublayers();
  return std::any_of(inner.begin(), inner.end(),
                     [&](const Layer& sublayer) { return holds(sublayer, model); });
}

}  // namespace

void SequentialImpl::add(const Layer& layer) {
  if (holds(layer, *this)) {
    throw InvalidArgumentError(cat("Sequential model '", name(), "' cannot be added to itself",
                                   layer.impl().get() == this
                                       ? std::string(".")
                                       : cat(": layer '", layer.name(), "' holds it."),
                                   " Add another layer."));
  }
  if (auto input = std::dynamic_pointer_cast<InputLayerImpl>(layer.impl()))
    return add_input(std::move(input));
  for (const Layer& other : layers_) {
    if (other.name() == layer.name()) {
      throw InvalidArgumentError(cat(
          "All layers added to a Sequential model should have unique names. Name '", layer.name(),
          "' is already the name of a layer in this model. Give the layer another "
          "`name`."));
    }
  }
  const std::size_t built = outputs_.size();
  layers_.push_back(layer);
  try {
    build_last();
    layers_changed();
  } catch (...) {
    layers_.pop_back();
    outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(built), outputs_.end());
    if (built == 0) build_again();
    throw;
  }
}

void SequentialImpl::build_last() {
  if (!outputs_.empty()) {
    outputs_.push_back(layers_.back()(outputs_.back()));
  } else if (input_) {
    ensure_built({input_->batch_shape()});
  }
}

Layer SequentialImpl::pop() {
  if (layers_.empty()) {
    throw FailedPreconditionError(
        cat("Sequential model '", name(), "' has no layer that could be taken away."));
  }
  const Layer last = layers_.back();
  const std::vector<KerasTensor> outputs = outputs_;
  layers_.pop_back();
  if (!outputs_.empty()) outputs_.pop_back();
  if (layers_.empty()) {
    outputs_.clear();
    build_again();
  }
  try {
    layers_changed();
  } catch (...) {
    if (!layers_.empty()) outputs_ = outputs;
    layers_.push_back(last);
    throw;
  }
  if (layers_.empty() && !input_is_given_) input_.reset();
  return last;
}

void SequentialImpl::build_many(const std::vector<PartialShape>& inputs) {
  if (layers_.empty()) {
    throw FailedPreconditionError(cat("Sequential model ", name(),
                                      " cannot be built because it has no layers. Call "
                                      "add(layer)."));
  }
  if (inputs.size() != 1 || inputs[0].rank() < 1) {
    throw InvalidArgumentError(
        cat("Sequential model '", name(), "' takes one input with a batch axis."));
  }
  // What fails leaves no input behind, to which later calls would be held.
  std::shared_ptr<InputLayerImpl> input = input_;
  std::vector<KerasTensor> outputs;
  try {
    if (input) {
      outputs = {input->output(), layers_.front()(input->output())};
    } else {
      std::tie(input, outputs) = make_input(inputs[0]);
    }
    for (std::size_t i = 1; i < layers_.size(); ++i) outputs.push_back(layers_[i](outputs.back()));
  } catch (const InvalidArgumentError&) {
    if (input_) throw;
    std::rethrow_exception(
        with_line(std::current_exception(),
                  cat("in building model '", name(), "' for input of shape ", inputs[0],
                      ", of which the first axis is the batch (of a dataset: did you call "
                      "batch()?)")));
  }
  input_ = std::move(input);
  outputs_ = std::move(outputs);
}

// An input for numbers or, where the first layer refuses them, for texts, and what the first layer
// makes of it.
std::pair<std::shared_ptr<InputLayerImpl>, std::vector<KerasTensor>> SequentialImpl::make_input(
    const PartialShape& batch) const {
  const Layer& first = layers_.front();
  const PartialShape example(
      std::vector<std::int64_t>(batch.dims().begin() + 1, batch.dims().end()));
  const auto try_with = [&](DType dtype) {
    auto input = std::make_shared<InputLayerImpl>(example, InputOptions{.dtype = dtype});
    const KerasTensor value = input->output();
    return std::pair(std::move(input), std::vector<KerasTensor>{value, first(value)});
  };
  try {
    return try_with(first.variable_dtype());
  } catch (const Error&) {
    const std::exception_ptr refused = std::current_exception();
    try {
      return try_with(DType::kString);
    } catch (const Error&) {
      std::rethrow_exception(refused);
    }
  }
}

std::vector<Tensor> SequentialImpl::call_many(std::span<const Tensor> inputs,
                                              const CallOptions& options) {
  if (inputs.size() != 1) {
    throw InvalidArgumentError(cat("Sequential model '", name(),
                                   "' takes one input but was called with ", inputs.size(), "."));
  }
  Tensor x = adapt_rank(inputs[0], input_->batch_shape());
  // The first batch of a model without an Input says only what the weights need: the layers check
  // that.
  if (input_is_given_ && !input_->batch_shape().is_compatible(x.partial_shape())) {
    throw InvalidArgumentError(
        cat("Input 0 of model \"", name(), "\" is incompatible with it: expected shape ",
            shape_text(input_->batch_shape()), ", found shape ", shape_text(x.partial_shape()),
            ". Give data of that shape (batches of a dataset: did you call batch()?), or build the "
            "model for another one."));
  }
  const DType wanted = input_->output().dtype();
  if (x.dtype() != wanted && x.dtype() != DType::kString) x = cast(x, wanted);
  if (const Tensor mask = options.mask_of(0); mask.defined()) attach_mask(x, mask);
  CallOptions how = options;
  how.mask = MaskList();
  for (const Layer& layer : layers_) {
    std::vector<Tensor> results = layer.impl()->run(std::vector<Tensor>{std::move(x)}, how);
    if (results.size() != 1) {
      throw InvalidArgumentError(
          cat("Layer '", layer.name(), "' has ", results.size(),
              " outputs. All layers in a "
              "Sequential model should have a single output; use a functional Model."));
    }
    x = std::move(results.front());
  }
  return {std::move(x)};
}

std::vector<Layer> SequentialImpl::sublayers() const { return layers_; }

// Saved like the functional model that Keras makes of a Sequential.
std::vector<LayerImpl::SavedPart> SequentialImpl::saved_parts() const {
  if (outputs_.empty()) return {};
  const OperationOrder operations = order_operations({outputs_.front()}, {outputs_.back()});
  std::vector<SavedPart> parts;
  for (const auto& layer : operations.layers) {
    parts.push_back(
        {cat("_functional/_operations/", operations.positions[parts.size()]), {}, Layer(layer)});
  }
  return parts;
}

std::vector<KerasTensor> SequentialImpl::input_tensors() const {
  if (outputs_.empty()) return {};
  return {outputs_.front()};
}
std::vector<std::string> SequentialImpl::output_names() const {
  return {layers_.empty() ? "output" : layers_.back().name()};
}

}  // namespace internal

namespace {

std::shared_ptr<internal::SequentialImpl> sequence(const std::vector<Layer>& layers,
                                                   const std::string& name) {
  auto impl = std::make_shared<internal::SequentialImpl>(name);
  for (const Layer& layer : layers) impl->add(layer);
  return impl;
}

}  // namespace

Sequential::Sequential(std::initializer_list<Layer> layers, const String& name)
    : Model(sequence(layers, name)) {}
Sequential::Sequential(const std::vector<Layer>& layers, const String& name)
    : Model(sequence(layers, name)) {}

void Sequential::add(const Layer& layer) const {
  static_cast<internal::SequentialImpl&>(model_impl()).add(layer);
}
Layer Sequential::pop() const { return static_cast<internal::SequentialImpl&>(model_impl()).pop(); }

}  // namespace tandem::keras
