#include "tandem/keras/internal/mask_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/operation_layer.h"
#include "tandem/runtime/trace.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::keras::internal {
namespace {

using Input = std::variant<KerasTensor, MaskValue>;

MaskValue op(const char* class_name, std::vector<Input> inputs, int rank, double operand = 0) {
  return std::make_shared<const MaskOp>(MaskOp{class_name, std::move(inputs), rank, operand});
}

template <std::size_t N>
bool is_one_of(const std::string& name, const std::array<const char*, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_model(const LayerImpl& layer) {
  return layer.class_name() == "Functional" || layer.class_name() == "Sequential";
}

// Whether call has an argument `mask` in Keras, of layers with one input.
bool takes_mask(const LayerImpl& layer) {
  static constexpr std::array kLayers{"SimpleRNN",
                                      "LSTM",
                                      "GRU",
                                      "RNN",
                                      "Bidirectional",
                                      "ConvLSTM1D",
                                      "ConvLSTM2D",
                                      "ConvLSTM3D",
                                      "Softmax",
                                      "TimeDistributed",
                                      "BatchNormalization",
                                      "GlobalAveragePooling1D"};
  return is_model(layer) || is_one_of(layer.class_name(), kLayers);
}

bool is_dot_attention(const LayerImpl& layer) {
  return layer.class_name() == "Attention" || layer.class_name() == "AdditiveAttention";
}

// The mask that the call was given for an input.
const KerasTensor* given_mask(const CallNode& node, std::size_t input) {
  const auto& masks = node.options.mask.keras_tensors();
  return input < masks.size() && masks[input] ? &*masks[input] : nullptr;
}

// Keras notes a mask with the call where it was given, and others only where it leaves the call's
// arguments as they are: a single tensor of the layer's dtype and nothing else. A functional model
// never touches them.
std::vector<MaskValue> handed_in(const CallNode& node, const std::vector<MaskValue>& masks) {
  const LayerImpl& layer = *node.layer;
  std::vector<MaskValue> given;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (given_mask(node, i)) given.push_back(masks[i]);
  }
  if (!given.empty()) return given;
  if (!takes_mask(layer)) return {};
  if (layer.class_name() != "Functional") {
    const bool alone = node.inputs.size() == 1 && !node.options.training;
    if (!alone || node.inputs[0].dtype() != layer.compute_dtype()) return {};
  }
  std::vector<MaskValue> present;
  for (const MaskValue& mask : masks) {
    if (mask) present.push_back(mask);
  }
  return present;
}

// ---- What the layers that make masks do in Keras. ----

MaskValue joined(const std::vector<Input>& inputs, const std::vector<KerasTensor>& tensors,
                 const std::vector<MaskValue>& masks) {
  std::vector<Input> wide;
  const int rank = tensors[0].shape().rank();
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i]) {
      wide.push_back(op("OnesLike", {inputs[i]}, rank));
    } else if (masks[i]->rank < rank) {
      const MaskValue with_axis = op("ExpandDims", {masks[i]}, rank);
      const MaskValue nowhere = op("ZerosLike", {inputs[i]}, rank);
      wide.push_back(op("LogicalOr", {with_axis, nowhere}, rank));
    } else {
      wide.push_back(masks[i]);
    }
  }
  return op("Any", {op("Concatenate", std::move(wide), rank)}, rank - 1);
}

// Nothing if the layer makes no masks of its own.
std::optional<MaskValue> made(const CallNode& node, const std::vector<MaskValue>& masks) {
  static constexpr std::array kMerging{"Add",     "Subtract", "Multiply",
                                       "Average", "Maximum",  "Minimum"};
  const LayerImpl& layer = *node.layer;
  const std::string& name = layer.class_name();
  std::vector<Input> inputs;
  for (const KerasTensor& t : node.inputs) {
    const bool cast = is_floating(t.dtype()) && t.dtype() != layer.compute_dtype();
    inputs.push_back(cast ? Input(op("Cast", {t}, t.shape().rank())) : Input(t));
  }
  const int rank = node.inputs[0].shape().rank();
  if (name == "Embedding") {
    const Config config = layer.config();
    const bool zeros = config.contains("mask_zero") && config.at("mask_zero") == ConfigValue(true);
    return zeros ? op("NotEqual", {inputs[0]}, rank) : nullptr;
  }
  if (name == "Masking") {
    const Config config = layer.config();
    const double* value = std::get_if<double>(config.find("mask_value"));
    return op("Any", {op("NotEqual", {inputs[0]}, rank, value ? *value : 0)}, rank - 1);
  }
  if (is_dot_attention(layer)) {
    return masks[0] ? op("ConvertToTensor", {masks[0]}, masks[0]->rank) : nullptr;
  }
  if (is_one_of(name, kMerging)) {
    MaskValue any = masks[0];
    for (std::size_t i = 1; i < masks.size(); ++i)
      any = any && masks[i] ? op("LogicalOr", {any, masks[i]}, any->rank) : nullptr;
    return any;
  }
  if (name == "Concatenate") {
    const bool some = std::any_of(masks.begin(), masks.end(), [](const auto& m) { return m; });
    return some ? joined(inputs, node.inputs, masks) : nullptr;
  }
  return std::nullopt;
}

// The masks of the outputs of a layer that passes on what it gets, as it does with values.
std::vector<MaskValue> passed_on(const CallNode& node, const std::vector<MaskValue>& masks) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const KerasTensor& t : node.inputs) {
    dtypes.push_back(t.dtype());
    shapes.push_back(t.shape());
  }
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (!masks[i]) continue;
    const std::vector<std::int64_t>& dims = node.inputs[i].shape().dims();
    const auto rank = std::min(static_cast<std::ptrdiff_t>(masks[i]->rank), std::ssize(dims));
    dtypes.push_back(DType::kBool);
    shapes.emplace_back(std::vector<std::int64_t>(dims.begin(), dims.begin() + rank));
  }
  std::vector<MaskValue> outputs;
  const TraceScope outside(nullptr);
  trace_function("masks", dtypes, shapes, [&](std::span<const Tensor> args) {
    std::vector<Tensor> given;
    std::size_t next = node.inputs.size();
    for (const MaskValue& mask : masks) given.push_back(mask ? args[next++] : Tensor());
    for (const Tensor& t : node.layer->compute_masks(args.first(node.inputs.size()), given)) {
      const auto found = std::find_if(given.begin(), given.end(), [&](const Tensor& m) {
        return m.defined() && t.defined() && m.is_same(t);
      });
      outputs.push_back(
          found == given.end() ? nullptr : masks[static_cast<std::size_t>(found - given.begin())]);
    }
    return std::vector<Tensor>(args.begin(), args.end());
  });
  return outputs;
}

}  // namespace

MaskForm mask_form(const LayerImpl& layer) {
  if (layer.input_form() == LayerImpl::InputForm::kSeparate) return MaskForm::kNamed;
  if (is_model(layer) || is_dot_attention(layer)) return MaskForm::kList;
  // None of Keras' other layers takes masks; layers of a class of the user's own may.
  const bool own = !ClassRegistry<Layer>::instance().find(layer.class_name()) &&
                   !dynamic_cast<const OperationImpl*>(&layer);
  return own || takes_mask(layer) ? MaskForm::kOne : MaskForm::kNone;
}

MaskValue mask_of(const KerasTensor& tensor) {
  const std::vector<MaskValue>& masks = tensor.node()->output_masks;
  const auto at = static_cast<std::size_t>(tensor.index());
  return at < masks.size() ? masks[at] : nullptr;
}

void note_mask_ops(CallNode& node) {
  if (node.inputs.empty()) return;
  std::vector<MaskValue> masks;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const KerasTensor* given = given_mask(node, i);
    masks.push_back(given ? op("", {*given}, given->shape().rank()) : mask_of(node.inputs[i]));
  }
  node.mask_inputs = handed_in(node, masks);
  // Masks by name are for the layer alone: its outputs get the one that comes with the first input.
  if (mask_form(*node.layer) == MaskForm::kNamed) masks[0] = mask_of(node.inputs[0]);
  if (const auto own = made(node, masks)) {
    node.output_masks = {*own};
  } else if (std::any_of(masks.begin(), masks.end(), [](const auto& m) { return m; })) {
    node.output_masks = passed_on(node, masks);
  }
}

}  // namespace tandem::keras::internal
