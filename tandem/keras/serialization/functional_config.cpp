#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
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

  /// One tensor by itself, several in a list.
  ConfigValue ends(const std::vector<KerasTensor>& tensors) const {
    if (tensors.size() == 1) return history(tensors[0]);
    std::vector<ConfigValue> list;
    for (const KerasTensor& tensor : tensors) list.push_back(history(tensor));
    return config_value(std::move(list));
  }

 private:
  ConfigValue history(const KerasTensor& tensor) const {
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
    return config_value(std::vector<ConfigValue>{
        node->layer->name(), std::int64_t{found - end->begin()}, std::int64_t{tensor.index()}});
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
    if (node.options.training) named.set("training", *node.options.training);
    if (node.options.use_causal_mask) named.set("use_causal_mask", true);
    if (node.options.return_attention_scores) named.set("return_attention_scores", true);
    return written_call(std::move(arguments), std::move(named));
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

const ConfigList& list_in(const Config& config, const char* name) {
  static const ConfigList kEmpty;
  const ConfigValue* value = config.find(name);
  if (const List* list = as<List>(value)) return **list;
  // A list without elements is one of numbers.
  if (as<std::vector<std::int64_t>>(value)) return kEmpty;
  throw InvalidArgumentError(cat("the list '", name, "' is missing."));
}

struct History {
  std::string layer;
  std::size_t call = 0;
  std::size_t result = 0;
};

History history_of(const ConfigValue& value) {
  const List* list = as<List>(&value);
  const std::string* layer =
      list && (*list)->values.size() >= 3 ? as<std::string>(&(*list)->values[0]) : nullptr;
  const auto* call = layer ? as<std::int64_t>(&(*list)->values[1]) : nullptr;
  const auto* result = layer ? as<std::int64_t>(&(*list)->values[2]) : nullptr;
  if (!call || !result || *call < 0 || *result < 0)
    throw InvalidArgumentError("a tensor is not named by layer, call and result.");
  return {*layer, static_cast<std::size_t>(*call), static_cast<std::size_t>(*result)};
}

// The tensors in an argument, and whether it holds anything else.
void collect_tensors(const ConfigValue& value, std::vector<History>& tensors, bool& others) {
  if (const Object* object = as<Object>(&value);
      object && (*object)->class_name == "__keras_tensor__") {
    tensors.push_back(history_of((*object)->config.at("keras_history")));
  } else if (const List* list = as<List>(&value)) {
    for (const ConfigValue& entry : (*list)->values) collect_tensors(entry, tensors, others);
  } else if (!std::holds_alternative<std::monostate>(value)) {
    others = true;
  }
}

struct Call {
  std::vector<History> inputs;
  CallOptions options;
};

// Arguments by name that are inputs, in the order of the layers' inputs.
constexpr const char* kNamedInputs[] = {"inputs", "query", "value", "key", "initial_state"};
constexpr const char* kAttentionMask = "attention_mask";

// The inputs of a call in no particular order; masks, which come with the tensors, are none.
void collect_inputs(const ConfigObject& call, std::vector<History>& inputs) {
  bool others = false;
  if (const ConfigValue* list = call.config.find("args")) collect_tensors(*list, inputs, others);
  const Object* named = as<Object>(call.config.find("kwargs"));
  if (!named) return;
  for (const auto& [name, argument] : (*named)->config.entries()) {
    if (name == kAttentionMask ||
        std::find(std::begin(kNamedInputs), std::end(kNamedInputs), name) != std::end(kNamedInputs))
      collect_tensors(argument, inputs, others);
  }
}

Call read_call(const ConfigValue& value) {
  const Object* object = as<Object>(&value);
  if (!object || !(*object)->config.contains("args"))
    throw UnimplementedError("its calls are in the form of Keras 2, which is not read.");
  Call call;
  bool others = false;
  for (const ConfigValue& argument : list_in((*object)->config, "args").values)
    collect_tensors(argument, call.inputs, others);
  const Object* named = as<Object>((*object)->config.find("kwargs"));
  const auto append = [&](const char* name) {
    if (const ConfigValue* argument = named ? (*named)->config.find(name) : nullptr)
      collect_tensors(*argument, call.inputs, others);
  };
  for (const char* name : kNamedInputs) append(name);
  const std::size_t before_mask = call.inputs.size();
  append(kAttentionMask);
  // A mask is the fourth input of attention, and the value serves as key.
  if (before_mask == 2 && call.inputs.size() == 3) {
    History mask = std::exchange(call.inputs[2], call.inputs[1]);
    call.inputs.push_back(std::move(mask));
  }
  if (named) {
    for (const auto& [name, argument] : (*named)->config.entries()) {
      // Masks come with the tensors, and `training` is what the model is doing.
      static constexpr std::string_view kKnown[] = {
          "inputs", "query", "value", "key", "initial_state", "attention_mask", "mask", "training"};
      if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) continue;
      const bool* flag = as<bool>(&argument);
      if (name == "use_causal_mask" && flag) {
        call.options.use_causal_mask = *flag;
      } else if (name == "return_attention_scores" && flag) {
        call.options.return_attention_scores = *flag;
      } else if (!std::holds_alternative<std::monostate>(argument) && !(flag && !*flag)) {
        throw UnimplementedError(
            cat("it is called with the argument '", name, "', which Tandem's layers do not have."));
      }
    }
  }
  if (others)
    throw UnimplementedError("it is called with values that are no tensors of the model.");
  return call;
}

// What stands between the layers where Keras' tensors are calculated with.
bool is_operation(const ConfigObject& object) {
  return object.module.find(".ops") != std::string::npos ||
         object.module.starts_with("keras.src.activations");
}

// An argument of an operation, with the tensors in it as inputs of the call.
ConfigValue read_argument(const ConfigValue& value, std::vector<History>& inputs) {
  if (const Object* object = as<Object>(&value);
      object && (*object)->class_name == "__keras_tensor__") {
    inputs.push_back(history_of((*object)->config.at("keras_history")));
    return input_argument(inputs.size() - 1);
  }
  if (input_index(value)) throw InvalidArgumentError("an argument of its call has no meaning.");
  const List* list = as<List>(&value);
  if (!list) return value;
  std::vector<ConfigValue> entries;
  for (const ConfigValue& entry : (*list)->values) entries.push_back(read_argument(entry, inputs));
  return config_value(std::move(entries));
}

struct OperationCall {
  Call call;
  SavedOperation saved;
};

OperationCall read_operation(const ConfigObject& object) {
  const ConfigList& calls = list_in(object.others, "inbound_nodes");
  if (calls.values.size() != 1) {
    throw UnimplementedError(
        cat("it is called ", calls.values.size(), " times, but an operation stands for one call."));
  }
  const Object* call = as<Object>(&calls.values[0]);
  if (!call) throw InvalidArgumentError("its call has no arguments.");
  OperationCall read;
  read.saved = {.class_name = object.class_name, .module = object.module, .config = object.config};
  for (const ConfigValue& argument : list_in((*call)->config, "args").values)
    read.saved.arguments.push_back(read_argument(argument, read.call.inputs));
  if (const Object* named = as<Object>((*call)->config.find("kwargs"))) {
    for (const auto& [name, argument] : (*named)->config.entries()) {
      if (!std::holds_alternative<std::monostate>(argument)) {
        throw UnimplementedError(cat("it is called with the argument '", name,
                                     "' by name, which is read by position alone."));
      }
    }
  }
  if (read.call.inputs.empty()) throw InvalidArgumentError("it has no inputs.");
  return read;
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
    const std::vector<KerasTensor> inputs = ends(arguments.find("input_layers")),
                                   outputs = ends(arguments.find("output_layers"));
    std::string name;
    arguments("name", name);
    model = Model(KerasTensors(inputs), KerasTensors(outputs), name);
  }

  Model model;

 private:
  struct Entry {
    std::string name;
    Layer layer;
    std::vector<Call> calls;
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
  static std::set<std::string> needed_operations(ArgumentReader& arguments,
                                                 const ConfigList& layers) {
    std::map<std::string, std::vector<History>> inputs;
    for (const ConfigValue& value : layers.values) {
      const ConfigObject& object = object_of(value);
      std::vector<History>& found = inputs[name_of(object)];
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
      const auto found = inputs.find(name);
      if (found == inputs.end()) continue;
      open.insert(open.end(), found->second.begin(), found->second.end());
    }
    return needed;
  }

  void add_layer(const ConfigValue& value, const std::set<std::string>& needed) {
    const ConfigObject* object = &object_of(value);
    Entry entry;
    entry.name = name_of(*object);
    if (is_operation(*object)) {
      if (needed.contains(entry.name)) add_operation(*object, std::move(entry));
      return;
    }
    entry.layer = layer_of_object(*object);
    if (const auto input = std::dynamic_pointer_cast<InputLayerImpl>(entry.layer.impl())) {
      entry.results = {{input->output()}};
    } else {
      try {
        for (const ConfigValue& call : list_in(object->others, "inbound_nodes").values)
          entry.calls.push_back(read_call(call));
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
      entry.calls.push_back(std::move(read.call));
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

  // Layers stand in no particular order where one is called several times.
  void make_calls() {
    for (bool again = true, progress = true; again;) {
      again = progress = false;
      for (Entry& entry : entries_in_order_) {
        while (entry.results.size() < entry.calls.size()) {
          const Call& call = entry.calls[entry.results.size()];
          std::vector<KerasTensor> inputs;
          for (const History& history : call.inputs) {
            if (const KerasTensor* tensor = find(history)) inputs.push_back(*tensor);
          }
          if (inputs.size() < call.inputs.size()) {
            again = true;
            break;
          }
          entry.results.push_back(entry.layer.outputs(inputs, call.options));
          progress = true;
        }
      }
      if (again && !progress) {
        throw InvalidArgumentError(
            "The calls of the layers need one another's results, so none can be made first.");
      }
    }
  }

  // One tensor by itself, several in a list.
  static std::vector<History> histories_of(const ConfigValue* value) {
    const List* list = as<List>(value);
    if (!list || (*list)->values.empty())
      throw InvalidArgumentError("The model does not say what its inputs and outputs are.");
    if (as<std::string>(&(*list)->values[0])) return {history_of(*value)};
    std::vector<History> histories;
    for (const ConfigValue& end : (*list)->values) histories.push_back(history_of(end));
    return histories;
  }

  std::vector<KerasTensor> ends(const ConfigValue* value) const {
    std::vector<KerasTensor> tensors;
    for (const History& history : histories_of(value)) {
      const KerasTensor* tensor = find(history);
      if (!tensor)
        throw InvalidArgumentError(cat("Layer '", history.layer, "' is not called as often as the ",
                                       "model's inputs and outputs say."));
      tensors.push_back(*tensor);
    }
    return tensors;
  }

  std::map<std::string, std::size_t> entries_;
  std::vector<Entry> entries_in_order_;
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
  config.set("input_layers", writer.ends(graph_.inputs()));
  config.set("output_layers", writer.ends(graph_.outputs()));
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
