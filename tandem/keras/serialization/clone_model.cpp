#include "tandem/keras/clone_model.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/input_layer_impl.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/operation_layer.h"
#include "tandem/keras/internal/sequential_impl.h"

namespace tandem::keras::models {
namespace {

using internal::CallNode;

KerasTensor new_input(const KerasTensor& like) {
  const std::vector<std::int64_t>& dims = like.shape().dims();
  return Input(PartialShape(std::vector<std::int64_t>(dims.begin() + 1, dims.end())),
               {.batch_size = dims.front(), .dtype = like.dtype(), .name = like.name()});
}

class Cloner {
 public:
  explicit Cloner(const CloneModelOptions& options) : options_(options) {}

  Model clone(const Model& model) {
    LayerImpl* impl = model.impl().get();
    if (auto* functional = dynamic_cast<internal::FunctionalImpl*>(impl)) {
      return clone_functional(*functional);
    }
    if (dynamic_cast<internal::SequentialImpl*>(impl)) return clone_sequential(model);
    throw UnimplementedError(cat("clone_model: model '", model.name(), "' (", model.class_name(),
                                 ") is no graph of layers. Make another one of its class."));
  }

 private:
  Layer clone_layer(const Layer& layer) {
    const auto known = layers_.find(layer.impl().get());
    if (known != layers_.end()) return known->second;
    const Layer made = new_layer(layer);
    layers_.emplace(layer.impl().get(), made);
    return made;
  }
  Layer new_layer(const Layer& layer) const {
    if (auto model = std::dynamic_pointer_cast<ModelImpl>(layer.impl())) {
      CloneModelOptions inner;
      inner.clone_function = options_.clone_function;
      return Cloner(inner).clone(Model(model));
    }
    if (options_.clone_function) return options_.clone_function(layer);
    if (dynamic_cast<const internal::OperationImpl*>(layer.impl().get())) return layer;
    const ConfigObject object = internal::layer_object(layer);
    if (object.module != internal::kUnregistered) return internal::layer_of_object(object);
    if (layer.weights().empty() && layer.built()) return layer;  // a Lambda
    throw UnimplementedError(cat("clone_model: layer '", layer.name(), "' is of a class of one's ",
                                 "own, ", layer.class_name(),
                                 ". Register it (tandem/keras/serialization.h), or give a "
                                 "clone_function."));
  }

  std::vector<KerasTensor> new_inputs(const std::vector<KerasTensor>& inputs) const {
    const std::vector<KerasTensor>& given = options_.input_tensors;
    if (!given.empty() && given.size() != inputs.size()) {
      throw InvalidArgumentError(cat("clone_model: ", given.size(), " input_tensors are given for ",
                                     inputs.size(), " inputs."));
    }
    if (!given.empty()) return given;
    std::vector<KerasTensor> made;
    for (const KerasTensor& input : inputs) made.push_back(new_input(input));
    return made;
  }

  Model clone_functional(const internal::FunctionalImpl& model) {
    const internal::CallGraph& graph = model.graph();
    const std::vector<KerasTensor> inputs = new_inputs(graph.inputs());
    std::map<std::pair<const CallNode*, int>, KerasTensor> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const KerasTensor& old = graph.inputs()[i];
      made.emplace(std::pair(old.node().get(), old.index()), inputs[i]);
    }
    const auto of = [&](const KerasTensor& old) {
      return made.at(std::pair<const CallNode*, int>(old.node().get(), old.index()));
    };
    for (const auto& node : graph.nodes()) {
      if (node->inputs.empty()) continue;
      std::vector<KerasTensor> arguments;
      for (const KerasTensor& input : node->inputs) arguments.push_back(of(input));
      std::vector<std::optional<KerasTensor>> masks;
      for (const auto& mask : node->options.mask.keras_tensors())
        masks.push_back(mask ? std::optional(of(*mask)) : std::nullopt);
      CallOptions options = node->options;
      options.mask = std::move(masks);
      const std::vector<KerasTensor> results =
          clone_layer(Layer(node->layer)).outputs(arguments, options);
      for (std::size_t i = 0; i < results.size(); ++i)
        made.emplace(std::pair(node.get(), static_cast<int>(i)), results[i]);
    }
    std::vector<KerasTensor> outputs;
    for (const KerasTensor& output : graph.outputs()) outputs.push_back(of(output));
    return Model(KerasTensors(inputs, model.given_input_names()),
                 KerasTensors(outputs, model.given_output_names()), model.name());
  }

  Model clone_sequential(const Model& model) {
    const std::vector<KerasTensor> inputs = model.model_impl().input_tensors();
    std::vector<Layer> layers;
    if (!options_.input_tensors.empty()) {
      layers.emplace_back(options_.input_tensors.front());
    } else if (!inputs.empty()) {
      layers.emplace_back(new_input(inputs.front()));
    }
    for (const Layer& layer : model.layers()) layers.push_back(clone_layer(layer));
    return Sequential(layers, model.name());
  }

  const CloneModelOptions& options_;
  std::map<const LayerImpl*, Layer> layers_;
};

}  // namespace

Model clone_model(const Model& model, const CloneModelOptions& options) {
  return Cloner(options).clone(model);
}

}  // namespace tandem::keras::models
