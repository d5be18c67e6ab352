#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/call_config.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/functional.h"
#include "tandem/keras/internal/input_layer_impl.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/operation_layer.h"
#include "tandem/keras/internal/sequential_impl.h"
#include "tandem/keras/layers/input_layer.h"
#include "tandem/keras/serialization.h"

// A functional model in a file: its layers, and for each the calls of it ("inbound_nodes"). A
// tensor is named by the layer, the number of the call, and the number of the result.

namespace tandem::keras::internal {
namespace {

using Object = std::shared_ptr<const ConfigObject>;
using List = std::shared_ptr<const ConfigList>;

ConfigValue shape_value(const PartialShape& shape) {
  std::vector<ConfigValue> sizes;
  for (const std::int64_t size : shape.dims()) {
    ConfigValue& value = sizes.emplace_back();  // none where the size is not known
    if (size >= 0) value = size;
  }
  return config_value(std::move(sizes));
}

// Where the ends of a model name a functional model within, Keras counts the call that made it.
std::int64_t calls_before_first(const LayerImpl& layer) {
  return dynamic_cast<const FunctionalImpl*>(&layer) ? 1 : 0;
}

// ---- Writing ----

class CallWriter {
 public:
  explicit CallWriter(const CallGraph& graph) : graph_(graph) {
    for (const auto& layer : graph.layers()) {
      std::vector<const CallNode*>& calls = calls_[layer.get()];
      for (const auto& node : graph.nodes()) {
        if (node->layer == layer) calls.push_back(node.get());
      }
      std::sort(calls.begin(), calls.end(),
                [](const CallNode* a, const CallNode* b) { return a->index < b->index; });
    }
  }

  ConfigValue layers() const {
    std::vector<ConfigValue> layers;
    for (const auto& layer : graph_.layers()) {
      ConfigObject object = layer_object(Layer(layer));
      object.others.set("name", layer->name());
      std::vector<ConfigValue> calls;
      for (const CallNode* node : calls_.at(layer.get())) {
        if (!node->inputs.empty()) calls.push_back(call(*node));
      }
      object.others.set("inbound_nodes", config_value(std::move(calls)));
      layers.push_back(config_value(std::move(object)));
    }
    return config_value(std::move(layers));
  }

  /// One tensor by itself, several in a list, or by their names.
  ConfigValue ends(const std::vector<KerasTensor>& tensors,
                   const std::vector<std::string>& names) const {
    const auto end = [&](const KerasTensor& tensor) {
      return history(tensor, calls_before_first(*tensor.node()->layer));
    };
    if (!names.empty()) {
      ConfigObject map;
      for (std::size_t i = 0; i < tensors.size(); ++i) map.config.set(names[i], end(tensors[i]));
      return config_value(std::move(map));
    }
    if (tensors.size() == 1) return end(tensors[0]);
    std::vector<ConfigValue> list;
    for (const KerasTensor& tensor : tensors) list.push_back(end(tensor));
    return config_value(std::move(list));
  }

 private:
  ConfigValue history(const KerasTensor& tensor, std::int64_t first = 0) const {
    const CallNode* node = tensor.node().get();
    const auto known = calls_.find(node->layer.get());
    const auto end = known == calls_.end() ? nullptr : &known->second;
    const auto found = end ? std::find(end->begin(), end->end(), node)
                           : std::vector<const CallNode*>::const_iterator();
    if (!end || found == end->end()) {
      throw UnimplementedError(cat("Tensor of layer '", node->layer->name(),
                                   "' is an input of the model, but comes ",
                                   "from no Input: such models have no form in a file."));
    }
    return config_value(std::vector<ConfigValue>{node->layer->name(),
                                                 first + std::int64_t{found - end->begin()},
                                                 std::int64_t{tensor.index()}});
  }

  ConfigValue tensor(const KerasTensor& tensor) const {
    Config config;
    config.set("shape", shape_value(tensor.shape()));
    config.set("dtype", dtype_value(tensor.dtype()));
    config.set("keras_history", history(tensor));
    return config_value(ConfigObject{.class_name = "__keras_tensor__", .config = config});
  }

  ConfigValue call(const CallNode& node) const {
    std::vector<ConfigValue> inputs;
    for (const KerasTensor& input : node.inputs) inputs.push_back(tensor(input));
    std::vector<ConfigValue> arguments;
    Config named;
    if (const auto* operation = dynamic_cast<const OperationImpl*>(node.layer.get());
        operation && operation->saved()) {
      for (const ConfigValue& argument : operation->saved()->arguments)
        arguments.push_back(with_inputs(argument, inputs));
      return written_call(std::move(arguments), std::move(named));
    }
    switch (node.layer->input_form()) {
      case LayerImpl::InputForm::kSeparate:  // query, value, key, attention_mask
        if (inputs.size() > 3) named.set("attention_mask", inputs[3]);
        if (inputs.size() > 2) named.set("key", inputs[2]);
        inputs.resize(std::min<std::size_t>(inputs.size(), 2));
        arguments = std::move(inputs);
        break;
      case LayerImpl::InputForm::kStates:
        arguments = {inputs[0]};
        if (inputs.size() > 1) {
          named.set("initial_state",
                    config_value(std::vector<ConfigValue>(inputs.begin() + 1, inputs.end())));
        }
        break;
      case LayerImpl::InputForm::kList:
        arguments = inputs.size() == 1 ? std::move(inputs)
                                       : std::vector<ConfigValue>{config_value(std::move(inputs))};
    }
    add_masks(node, named);
    if (node.options.training) named.set("training", *node.options.training);
    if (node.options.use_causal_mask) named.set("use_causal_mask", true);
    if (node.options.return_attention_scores) named.set("return_attention_scores", true);
    return written_call(std::move(arguments), std::move(named));
  }

  // The masks that the call was given; Keras finds those that come with the inputs by itself.
  void add_masks(const CallNode& node, Config& named) const {
    const auto& masks = node.options.mask.keras_tensors();
    std::vector<ConfigValue> values;  // without those behind the last one that was given
    for (std::size_t i = 0; i < masks.size(); ++i) {
      if (!masks[i]) continue;
      values.resize(i);
      values.push_back(tensor(*masks[i]));
    }
    if (values.empty()) return;
    const auto refuse = [&](const std::string& why) {
      throw UnimplementedError(cat("Layer '", node.layer->name(), "' (", node.layer->class_name(),
                                   ") is called with a mask, ", why,
                                   ": such calls have no form in a file."));
    };
    switch (mask_form(*node.layer)) {
      case MaskForm::kNone: refuse("which Keras' layer does not take"); break;
      case MaskForm::kOne:
        if (values.size() > 1) refuse("but not of its first input alone");
        named.set("mask", values[0]);
        break;
      case MaskForm::kList:
        if (node.inputs.size() == 1) {
          named.set("mask", values[0]);
          break;
        }
        values.resize(node.inputs.size());
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          const bool given = !std::holds_alternative<std::monostate>(values[i]);
          const bool is_model = dynamic_cast<const ModelImpl*>(node.layer.get()) != nullptr;
          if (!given && !is_model && mask_of(node.inputs[i]))
            refuse("which Keras' layer would take for those of all inputs");
        }
        named.set("mask", config_value(std::move(values)));
        break;
      case MaskForm::kNamed:
        if (values.size() > std::size(kNamedMasks)) refuse("but not of query, value or key alone");
        if (masks[0] && node.layer->class_name() == "MultiHeadAttention")
          refuse("of the query, but Keras' layer takes the one that comes with it");
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (masks[i]) named.set(kNamedMasks[i], values[i]);
        }
    }
  }

  // An operation's argument with `inputs` where it stands for some.
  static ConfigValue with_inputs(const ConfigValue& argument,
                                 const std::vector<ConfigValue>& inputs) {
    if (const auto index = input_index(argument)) return inputs.at(*index);
    const List* list = std::get_if<List>(&argument);
    if (!list) return argument;
    std::vector<ConfigValue> entries;
    for (const ConfigValue& entry : (*list)->values) entries.push_back(with_inputs(entry, inputs));
    return config_value(std::move(entries));
  }

  static ConfigValue written_call(std::vector<ConfigValue> arguments, Config named) {
    Config call;
    call.set("args", config_value(std::move(arguments)));
    call.set("kwargs", config_value(ConfigObject{.class_name = "", .config = std::move(named)}));
    return config_value(ConfigObject{.class_name = "", .config = std::move(call)});
  }

  const CallGraph& graph_;
  std::map<const LayerImpl*, std::vector<const CallNode*>> calls_;
};

// ---- Reading ----

template <class T>
const T* as(const ConfigValue* value) {
  return value ? std::get_if<T>(value) : nullptr;
}

class FunctionalReader {
 public:
  explicit FunctionalReader(ArgumentReader& arguments) {
    const ConfigValue* layers = arguments.find("layers");
    const List* list = as<List>(layers);
    if (!list) throw InvalidArgumentError("A functional model in the file has no layers.");
    const std::set<std::string> needed = needed_operations(arguments, **list);
    for (const ConfigValue& value : (*list)->values) add_layer(value, needed);
    make_calls();
    const KerasTensors inputs = ends(arguments.find("input_layers")),
                       outputs = ends(arguments.find("output_layers"));
    std::string name;
    arguments("name", name);
    model = Model(inputs, outputs, name);
  }

  Model model;

 private:
  struct Entry {
    std::string name;
    Layer layer;
    std::vector<SavedCall> calls;
    std::vector<std::vector<KerasTensor>> results;
  };

  static const ConfigObject& object_of(const ConfigValue& value) {
    const Object* object = as<Object>(&value);
    if (!object || (*object)->class_name.empty())
      throw InvalidArgumentError("A layer of the model in the file has no class.");
    return **object;
  }
  static const std::string& name_of(const ConfigObject& object) {
    const std::string* name = as<std::string>(object.others.find("name"));
    if (!name) name = as<std::string>(object.config.find("name"));
    if (!name) throw InvalidArgumentError("A layer of the model in the file has no name.");
    return *name;
  }

  // The names of those layers and operations on which the outputs depend. Others are what Keras
  // puts between layers to compute masks; Tandem's layers compute their own.
  std::set<std::string> needed_operations(ArgumentReader& arguments, const ConfigList& layers) {
    for (const ConfigValue& value : layers.values) {
      const ConfigObject& object = object_of(value);
      std::vector<History>& found = inputs_[name_of(object)];
      if (!object.others.contains("inbound_nodes")) continue;
      for (const ConfigValue& node : list_in(object.others, "inbound_nodes").values) {
        if (const Object* call = as<Object>(&node)) collect_inputs(**call, found);
      }
    }
    std::vector<History> open = histories_of(arguments.find("output_layers"));
    std::set<std::string> needed;
    while (!open.empty()) {
      const std::string name = std::move(open.back().layer);
      open.pop_back();
      if (!needed.insert(name).second) continue;
      const auto found = inputs_.find(name);
      if (found == inputs_.end()) continue;
      open.insert(open.end(), found->second.begin(), found->second.end());
    }
    return needed;
  }

  void add_layer(const ConfigValue& value, const std::set<std::string>& needed) {
    const ConfigObject* object = &object_of(value);
    Entry entry;
    entry.name = name_of(*object);
    if (is_operation(*object)) {
      operations_.emplace(entry.name, object);
      if (needed.contains(entry.name)) add_operation(*object, std::move(entry));
      return;
    }
    entry.layer = layer_of_object(*object);
    if (const auto input = std::dynamic_pointer_cast<InputLayerImpl>(entry.layer.impl())) {
      entry.results = {{input->output()}};
    } else {
      try {
        for (const ConfigValue& call : list_in(object->others, "inbound_nodes").values)
          entry.calls.push_back(read_call(call, *entry.layer.impl()));
      } catch (const Error& error) {
        throw_error(error.code(),
                    cat("Layer '", entry.name, "' (", object->class_name, "): ", error.what()));
      }
    }
    add(std::move(entry));
  }

  void add_operation(const ConfigObject& object, Entry entry) {
    try {
      OperationCall read = read_operation(object);
      entry.layer = make_layer<OperationImpl>(object.class_name, operation_of(read.saved),
                                              read.saved, entry.name);
      entry.calls.push_back({.inputs = std::move(read.inputs)});
    } catch (const Error& error) {
      throw_error(error.code(), cat("Operation '", entry.name, "': ", error.what()));
    }
    add(std::move(entry));
  }

  void add(Entry entry) {
    if (!entries_.emplace(entry.name, entries_in_order_.size()).second)
      throw InvalidArgumentError(cat("Two layers of the model are named '", entry.name, "'."));
    entries_in_order_.push_back(std::move(entry));
  }

  const KerasTensor* find(const History& history) const {
    const auto entry = entries_.find(history.layer);
    if (entry == entries_.end()) {
      throw InvalidArgumentError(
          cat("A tensor comes from '", history.layer, "', which is no layer of the model."));
    }
    const auto& results = entries_in_order_[entry->second].results;
    if (history.call >= results.size()) return nullptr;
    if (history.result >= results[history.call].size()) {
      throw InvalidArgumentError(cat("Layer '", history.layer, "' has ",
                                     results[history.call].size(), " results, but result ",
                                     history.result, " is used."));
    }
    return &results[history.call][history.result];
  }

  // Layers stand in no particular order where one is called several times. Calls may add operations
  // that compute their masks.
  void make_calls() {
    for (bool again = true, progress = true; again;) {
      again = progress = false;
      for (std::size_t i = 0; i < entries_in_order_.size(); ++i) {
        Entry& entry = entries_in_order_[i];
        while (entry.results.size() < entry.calls.size()) {
          if (!make_call(entry, entry.calls[entry.results.size()])) {
            again = true;
            break;
          }
          progress = true;
        }
      }
      if (again && !progress) {
        throw InvalidArgumentError(
            "The calls of the layers need one another's results, so none can be made first.");
      }
    }
  }

  // False if it needs results of calls that are still to be made.
  bool make_call(Entry& entry, const SavedCall& call) {
    std::vector<KerasTensor> inputs;
    for (const History& history : call.inputs) {
      if (const KerasTensor* tensor = find(history)) inputs.push_back(*tensor);
    }
    if (inputs.size() < call.inputs.size()) return false;
    CallOptions options = call.options;
    try {
      const std::optional<Masks> masks = masks_of(*entry.layer.impl(), call, inputs);
      if (!masks) return false;
      if (!masks->empty()) options.mask = *masks;
    } catch (const Error& error) {
      throw_error(error.code(),
                  cat("Layer '", entry.name, "' (", entry.layer.class_name(), "): ", error.what()));
    }
    entry.results.push_back(entry.layer.outputs(inputs, options));
    return true;
  }

  // The masks that the call was given besides those that come with its inputs; none if some are
  // still to be computed.
  using Masks = std::vector<std::optional<KerasTensor>>;
  std::optional<Masks> masks_of(const LayerImpl& layer, const SavedCall& call,
                                const std::vector<KerasTensor>& inputs) {
    if (call.masks.size() > inputs.size()) {
      throw InvalidArgumentError(
          cat("it is called with ", call.masks.size(), " masks for ", inputs.size(), " input(s)."));
    }
    Masks masks(call.masks.size());
    bool any = false, all = true;
    for (std::size_t i = 0; i < masks.size(); ++i) {
      const std::optional<History>& history = call.masks[i];
      const MaskValue own = mask_of(inputs[i]);
      if (!history || is_mask(*history, own)) continue;
      need(*history);
      const KerasTensor* tensor = find(*history);
      all = all && tensor;
      any = true;
      if (tensor) masks[i] = *tensor;
    }
    if (!all) return std::nullopt;
    if (!any) return Masks();
    check_without_mask(layer, masks, inputs);
    return masks;
  }

  // Attention gets a list of masks, in which an input without one has none.
  static void check_without_mask(const LayerImpl& layer, Masks masks,
                                 const std::vector<KerasTensor>& inputs) {
    if (mask_form(layer) != MaskForm::kList || dynamic_cast<const ModelImpl*>(&layer)) return;
    masks.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!masks[i] && mask_of(inputs[i])) {
        throw UnimplementedError(
            cat("its argument 'mask' leaves out the mask that comes with input ", i,
                ", which Tandem's layers cannot."));
      }
    }
  }

  // Whether a tensor of the file is what Keras computes as this mask by itself.
  bool is_mask(const History& history, const MaskValue& mask) const {
    if (!mask) return false;
    if (const KerasTensor* given = mask->given()) return is_tensor(history, *given);
    const auto found = operations_.find(history.layer);
    if (found == operations_.end() || found->second->class_name != mask->class_name) return false;
    const std::vector<History>& inputs = inputs_.at(history.layer);
    if (inputs.size() != mask->inputs.size()) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto* tensor = std::get_if<KerasTensor>(&mask->inputs[i]);
      if (tensor ? !is_tensor(inputs[i], *tensor)
                 : !is_mask(inputs[i], std::get<MaskValue>(mask->inputs[i])))
        return false;
    }
    if (mask->class_name != "NotEqual") return true;
    const std::vector<ConfigValue> arguments = read_operation(*found->second).saved.arguments;
    return arguments.size() == 2 && is_number(arguments[1], mask->operand);
  }
  bool is_tensor(const History& history, const KerasTensor& tensor) const {
    const KerasTensor* found = find(history);
    return found && found->is_same(tensor);
  }
  static bool is_number(const ConfigValue& value, double number) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      return static_cast<double>(*integer) == number;
    const auto* real = std::get_if<double>(&value);
    return real && *real == number;
  }

  // Adds an operation that only masks depend on, and those before it.
  void need(const History& history) {
    std::vector<std::string> open{history.layer};
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      const auto found = operations_.find(name);
      if (found == operations_.end() || entries_.contains(name)) continue;
      Entry entry;
      entry.name = name;
      add_operation(*found->second, std::move(entry));
      for (const History& input : inputs_.at(name)) open.push_back(input.layer);
    }
  }

  // The entries of an object without a class.
  static const Config* map_of(const ConfigValue* value) {
    const Object* object = as<Object>(value);
    return object && (*object)->class_name.empty() ? &(*object)->config : nullptr;
  }

  // One tensor by itself, several in a list or by names.
  static std::vector<History> histories_of(const ConfigValue* value) {
    if (const Config* map = map_of(value)) {
      std::vector<History> histories;
      for (const auto& entry : map->entries()) histories.push_back(history_of(entry.second));
      if (!histories.empty()) return histories;
    }
    const List* list = as<List>(value);
    if (!list || (*list)->values.empty())
      throw InvalidArgumentError("The model does not say what its inputs and outputs are.");
    if (as<std::string>(&(*list)->values[0])) return {history_of(*value)};
    std::vector<History> histories;
    for (const ConfigValue& end : (*list)->values) histories.push_back(history_of(end));
    return histories;
  }

  KerasTensors ends(const ConfigValue* value) const {
    std::vector<KerasTensor> tensors;
    for (History history : histories_of(value)) {
      const auto entry = entries_.find(history.layer);
      const auto first = entry == entries_.end()
                             ? 0
                             : calls_before_first(*entries_in_order_[entry->second].layer.impl());
      // Files of an earlier Tandem do not count it.
      if (history.call > 0) history.call -= static_cast<std::size_t>(first);
      const KerasTensor* tensor = find(history);
      if (!tensor)
        throw InvalidArgumentError(cat("Layer '", history.layer, "' is not called as often as the ",
                                       "model's inputs and outputs say."));
      tensors.push_back(*tensor);
    }
    const Config* map = map_of(value);
    if (!map) return tensors;
    std::map<std::string, KerasTensor> by_name;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      by_name.emplace(map->entries()[i].first, tensors[i]);
    return by_name;
  }

  // What the file has, by name: what layers and operations read, and the operations.
  std::map<std::string, std::vector<History>> inputs_;
  std::map<std::string, const ConfigObject*> operations_;
  std::map<std::string, std::size_t> entries_;
  std::deque<Entry> entries_in_order_;
};

Layer read_functional(ArgumentReader& arguments) { return FunctionalReader(arguments).model; }

PartialShape read_shape(const std::vector<std::int64_t>& sizes) { return PartialShape(sizes); }

Layer read_sequential(ArgumentReader& arguments) {
  std::vector<Layer> layers;
  std::string name;
  arguments("layers", layers);
  arguments("name", name);
  Sequential model(layers, name);
  std::vector<std::int64_t> shape;
  arguments("build_input_shape", shape);
  if (!shape.empty() && !model.built()) model.build(read_shape(shape));
  return model;
}

Layer read_input(ArgumentReader& arguments) {
  std::vector<std::int64_t> batch_shape, shape;
  InputOptions options;
  arguments("batch_shape", batch_shape);
  if (!batch_shape.empty()) {
    options.batch_size = batch_shape.front();
    shape.assign(batch_shape.begin() + 1, batch_shape.end());
  } else {
    arguments("shape", shape);
  }
  std::string dtype = "float32";
  arguments("dtype", dtype);
  const auto parsed = parse_dtype(dtype);
  if (!parsed) throw InvalidArgumentError(cat("Input: there is no dtype '", dtype, "'."));
  options.dtype = *parsed;
  arguments("name", options.name);
  return InputLayer(read_shape(shape), options);
}

const bool kRegistered[] = {ClassRegistry<Layer>::instance().add("Functional", read_functional),
                            ClassRegistry<Layer>::instance().add("Model", read_functional),
                            ClassRegistry<Layer>::instance().add("Sequential", read_sequential),
                            ClassRegistry<Layer>::instance().add("InputLayer", read_input)};

}  // namespace

void FunctionalImpl::describe(Config& config) const {
  const CallWriter writer(graph_);
  config.set("layers", writer.layers());
  config.set("input_layers", writer.ends(graph_.inputs(), given_input_names_));
  config.set("output_layers", writer.ends(graph_.outputs(), given_output_names_));
}

void SequentialImpl::describe(Config& config) const {
  std::vector<ConfigValue> layers;
  if (input_) layers.push_back(config_value(layer_object(Layer(input_))));
  for (const Layer& layer : layers_) layers.push_back(config_value(layer_object(layer)));
  config.set("layers", config_value(std::move(layers)));
  if (input_) config.set("build_input_shape", shape_value(input_->batch_shape()));
}

void InputLayerImpl::describe(Config& config) const {
  config.set("batch_shape", shape_value(shape_)).set("dtype", dtype_value(dtype_));
}

}  // namespace tandem::keras::internal
