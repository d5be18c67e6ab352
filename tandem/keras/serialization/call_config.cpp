#include "tandem/keras/internal/call_config.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/mask_ops.h"

namespace tandem::keras::internal {
namespace {

using Object = std::shared_ptr<const ConfigObject>;
using List = std::shared_ptr<const ConfigList>;

template <class T>
const T* as(const ConfigValue* value) {
  return value ? std::get_if<T>(value) : nullptr;
}

bool is_none(const ConfigValue& value) { return std::holds_alternative<std::monostate>(value); }

const ConfigObject* tensor_in(const ConfigValue& value) {
  const Object* object = as<Object>(&value);
  return object && (*object)->class_name == "__keras_tensor__" ? object->get() : nullptr;
}

History history_of_tensor(const ConfigObject& tensor) {
  return history_of(tensor.config.at("keras_history"));
}

// The tensors in an argument, and whether it holds anything else.
void collect_tensors(const ConfigValue& value, std::vector<History>& tensors, bool& others) {
  if (const ConfigObject* tensor = tensor_in(value)) {
    tensors.push_back(history_of_tensor(*tensor));
  } else if (const List* list = as<List>(&value)) {
    for (const ConfigValue& entry : (*list)->values) collect_tensors(entry, tensors, others);
  } else if (!is_none(value)) {
    others = true;
  }
}

// ---- The arguments of a layer's call, by name. ----

// Inputs in the order of the layers' inputs; attention's mask comes last.
constexpr std::string_view kInputs[] = {"inputs", "sequences", "sequence",     "query",
                                        "value",  "key",       "initial_state"};
constexpr std::string_view kAttentionMask = "attention_mask";
constexpr std::string_view kMask = "mask";

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// What the arguments by position are called; all are inputs where nothing is said.
std::vector<std::string_view> positions(const LayerImpl& layer) {
  if (layer.input_form() == LayerImpl::InputForm::kSeparate)
    return {"query", "value", "key", "query_mask", "value_mask", "key_mask", kAttentionMask};
  if (layer.input_form() == LayerImpl::InputForm::kStates)
    return {"sequences", "initial_state", kMask, "training"};
  static constexpr std::string_view kTrainingFirst[] = {"BatchNormalization", "TimeDistributed",
                                                        "Functional", "Sequential"};
  if (is_one_of(layer.class_name(), kTrainingFirst)) return {"inputs", "training", kMask};
  static constexpr std::string_view kMaskFirst[] = {"Attention", "AdditiveAttention", "Softmax",
                                                    "GlobalAveragePooling1D"};
  if (is_one_of(layer.class_name(), kMaskFirst)) return {"inputs", kMask, "training"};
  return {};
}

using Arguments = std::map<std::string_view, const ConfigValue*>;

// Tensors by position are inputs where the layer's signature does not name them.
struct CallArguments {
  Arguments named;
  std::vector<const ConfigValue*> unnamed;
};

CallArguments arguments_of(const ConfigObject& call, const LayerImpl& layer) {
  CallArguments all;
  const std::vector<std::string_view> names = positions(layer);
  std::size_t at = 0;
  for (const ConfigValue& value : list_in(call.config, "args").values) {
    if (at < names.size()) {
      all.named[names[at++]] = &value;
    } else {
      all.unnamed.push_back(&value);
    }
  }
  if (const Object* named = as<Object>(call.config.find("kwargs"))) {
    for (const auto& [name, value] : (*named)->config.entries()) all.named[name] = &value;
  }
  return all;
}

// Whether the value is that of a call without the argument.
bool is_off(const ConfigValue& value) {
  const bool* flag = as<bool>(&value);
  return is_none(value) || (flag && !*flag);
}

[[noreturn]] void refuse(std::string_view argument) {
  throw UnimplementedError(
      cat("it is called with the argument '", argument, "', which Tandem's layers do not have."));
}

// A mask, or a list of some.
std::vector<std::optional<History>> masks_in(const ConfigValue& value, std::string_view name) {
  if (is_none(value)) return {};
  if (const ConfigObject* tensor = tensor_in(value)) return {history_of_tensor(*tensor)};
  const List* list = as<List>(&value);
  std::vector<std::optional<History>> masks;
  for (const ConfigValue& entry : list ? std::span((*list)->values) : std::span(&value, 1)) {
    const ConfigObject* tensor = tensor_in(entry);
    if (!tensor && !is_none(entry)) {
      throw UnimplementedError(
          cat("it is called with the argument '", name, "', which is no tensor of the model."));
    }
    masks.push_back(tensor ? std::optional(history_of_tensor(*tensor)) : std::nullopt);
  }
  return masks;
}

std::vector<std::optional<History>> masks_of(const Arguments& arguments, const LayerImpl& layer) {
  const MaskForm form = mask_form(layer);
  std::vector<std::optional<History>> masks;
  if (form == MaskForm::kNamed) {
    for (const char* name : kNamedMasks) {
      const auto found = arguments.find(name);
      std::vector<std::optional<History>> mask;
      if (found != arguments.end()) mask = masks_in(*found->second, name);
      if (mask.size() > 1) refuse(name);
      masks.push_back(mask.empty() ? std::nullopt : mask[0]);
    }
    // Whatever it is called with, Keras' layer takes the mask that comes with the query.
    if (layer.class_name() == "MultiHeadAttention") masks[0].reset();
  } else if (const auto found = arguments.find(kMask); found != arguments.end()) {
    masks = masks_in(*found->second, kMask);
    const bool any = std::any_of(masks.begin(), masks.end(), [](const auto& m) { return !!m; });
    if (any && (form == MaskForm::kNone || (form == MaskForm::kOne && masks.size() > 1)))
      refuse(kMask);
  }
  while (!masks.empty() && !masks.back()) masks.pop_back();
  return masks;
}

void read_option(std::string_view name, const ConfigValue& value, CallOptions& options) {
  const bool* flag = as<bool>(&value);
  if (name == "use_causal_mask" && flag) {
    options.use_causal_mask = *flag;
  } else if (name == "return_attention_scores" && flag) {
    options.return_attention_scores = *flag;
  } else if (!is_off(value)) {
    refuse(name);
  }
}

// An argument of an operation, with the tensors in it as inputs of the call.
ConfigValue read_argument(const ConfigValue& value, std::vector<History>& inputs) {
  if (const ConfigObject* tensor = tensor_in(value)) {
    inputs.push_back(history_of_tensor(*tensor));
    return input_argument(inputs.size() - 1);
  }
  if (input_index(value)) throw InvalidArgumentError("an argument of its call has no meaning.");
  const List* list = as<List>(&value);
  if (!list) return value;
  std::vector<ConfigValue> entries;
  for (const ConfigValue& entry : (*list)->values) entries.push_back(read_argument(entry, inputs));
  return config_value(std::move(entries));
}

}  // namespace

const ConfigList& list_in(const Config& config, const char* name) {
  static const ConfigList kEmpty;
  const ConfigValue* value = config.find(name);
  if (const List* list = as<List>(value)) return **list;
  // A list without elements is one of numbers.
  if (as<std::vector<std::int64_t>>(value)) return kEmpty;
  throw InvalidArgumentError(cat("the list '", name, "' is missing."));
}

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

void collect_inputs(const ConfigObject& call, std::vector<History>& inputs) {
  bool others = false;
  if (const ConfigValue* list = call.config.find("args")) collect_tensors(*list, inputs, others);
  const Object* named = as<Object>(call.config.find("kwargs"));
  if (!named) return;
  for (const auto& [name, argument] : (*named)->config.entries()) {
    if (name == kAttentionMask || is_one_of(name, kInputs))
      collect_tensors(argument, inputs, others);
  }
}

SavedCall read_call(const ConfigValue& value, const LayerImpl& layer) {
  const Object* object = as<Object>(&value);
  if (!object || !(*object)->config.contains("args"))
    throw UnimplementedError("its calls are in the form of Keras 2, which is not read.");
  const CallArguments arguments = arguments_of(**object, layer);
  SavedCall call;
  bool others = false;
  for (const ConfigValue* argument : arguments.unnamed)
    collect_tensors(*argument, call.inputs, others);
  const auto append = [&](std::string_view name) {
    if (const auto found = arguments.named.find(name); found != arguments.named.end())
      collect_tensors(*found->second, call.inputs, others);
  };
  for (const std::string_view name : kInputs) append(name);
  const std::size_t before_mask = call.inputs.size();
  append(kAttentionMask);
  call.masks = masks_of(arguments.named, layer);
  // A mask is the fourth input of attention, and the value serves as key.
  const bool for_key = call.masks.size() == 3 || call.inputs.size() == 3;
  if (mask_form(layer) == MaskForm::kNamed && before_mask == 2 && for_key)
    call.inputs.insert(call.inputs.begin() + 2, History(call.inputs[1]));
  for (const auto& [name, argument] : arguments.named) {
    // `training` is what the model is doing.
    const bool known =
        is_one_of(name, kInputs) || name == kAttentionMask || name == kMask || name == "training";
    const bool mask = mask_form(layer) == MaskForm::kNamed && is_one_of(name, kNamedMasks);
    if (!known && !mask) read_option(name, *argument, call.options);
  }
  if (others)
    throw UnimplementedError("it is called with values that are no tensors of the model.");
  return call;
}

bool is_operation(const ConfigObject& object) {
  return object.module.find(".ops") != std::string::npos ||
         object.module.starts_with("keras.src.activations");
}

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
    read.saved.arguments.push_back(read_argument(argument, read.inputs));
  if (const Object* named = as<Object>((*call)->config.find("kwargs"))) {
    for (const auto& [name, argument] : (*named)->config.entries()) {
      if (!is_none(argument)) {
        throw UnimplementedError(cat("it is called with the argument '", name,
                                     "' by name, which is read by position alone."));
      }
    }
  }
  if (read.inputs.empty()) throw InvalidArgumentError("it has no inputs.");
  return read;
}

}  // namespace tandem::keras::internal
