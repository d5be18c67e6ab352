#include "tandem/keras/internal/model_graph.h"

#include <map>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/sequential_impl.h"

namespace tandem::keras::internal {
namespace {

using Json = nlohmann::json;

Json layer_json(const LayerImpl& layer);

// [layer, call, output] as Keras names a value.
Json history_of(const KerasTensor& tensor) {
  return {tensor.node()->layer->name(), tensor.node()->index, tensor.index()};
}

// One value stands for itself, several are a list.
Json histories_of(const std::vector<KerasTensor>& tensors) {
  if (tensors.size() == 1) return history_of(tensors.front());
  Json all = Json::array();
  for (const KerasTensor& tensor : tensors) all.push_back(history_of(tensor));
  return all;
}

Json functional_json(const FunctionalImpl& model) {
  Json layers = Json::array();
  for (const std::shared_ptr<LayerImpl>& layer : model.graph().layers()) {
    Json entry = layer_json(*layer);
    entry["name"] = layer->name();
    Json calls = Json::array();
    for (const std::shared_ptr<CallNode>& node : model.graph().nodes()) {
      if (node->layer != layer || node->inputs.empty()) continue;
      Json args = Json::array();
      for (const KerasTensor& input : node->sources()) {
        args.push_back({{"class_name", "__keras_tensor__"},
                        {"config", {{"keras_history", history_of(input)}}}});
      }
      calls.push_back({{"args", {std::move(args)}}, {"kwargs", Json::object()}});
    }
    entry["inbound_nodes"] = std::move(calls);
    layers.push_back(std::move(entry));
  }
  return {{"name", model.name()},
          {"layers", std::move(layers)},
          {"input_layers", histories_of(model.graph().inputs())},
          {"output_layers", histories_of(model.graph().outputs())}};
}

Json layer_json(const LayerImpl& layer) {
  if (const auto* functional = dynamic_cast<const FunctionalImpl*>(&layer))
    return {{"class_name", "Functional"}, {"config", functional_json(*functional)}};
  if (const auto* sequential = dynamic_cast<const SequentialImpl*>(&layer)) {
    Json layers = Json::array();
    for (const Layer& inner : sequential->sublayers()) layers.push_back(layer_json(*inner.impl()));
    return {{"class_name", "Sequential"},
            {"config", {{"name", layer.name()}, {"layers", std::move(layers)}}}};
  }
  const std::string dtype = dtype_name(layer.compute_dtype());
  return {{"class_name", layer.class_name()},
          {"config", {{"name", layer.name()}, {"dtype", dtype}}}};
}

}  // namespace

std::string model_graph_json(const Model& model) {
  const LayerImpl& impl = model.model_impl();
  const bool known = dynamic_cast<const FunctionalImpl*>(&impl) != nullptr ||
                     dynamic_cast<const SequentialImpl*>(&impl) != nullptr;
  return known ? layer_json(impl).dump() : "";
}

}  // namespace tandem::keras::internal
