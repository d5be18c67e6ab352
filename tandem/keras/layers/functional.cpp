#include "tandem/keras/internal/functional.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "tandem/core/error.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/rank_adaption.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::internal {

CallGraph::CallGraph(std::vector<KerasTensor> inputs, std::vector<KerasTensor> outputs)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  if (inputs_.empty() || outputs_.empty()) {
    throw InvalidArgumentError(
        "A Model needs at least one input and one output: Model(input, output).");
  }
  for (const KerasTensor& output : outputs_) visit(output);
  for (const KerasTensor& input : inputs_) visit(input);  // those that no output uses
  rank_layers();
  number_values();
}

void CallGraph::visit(const KerasTensor& tensor) {
  const std::shared_ptr<CallNode>& node = tensor.node();
  if (std::find(order_.begin(), order_.end(), node) != order_.end()) return;
  const bool given = std::any_of(inputs_.begin(), inputs_.end(),
                                 [&](const KerasTensor& t) { return t.is_same(tensor); });
  if (given && !node->inputs.empty()) return;  // a model that begins in the middle of another
  if (!given && node->inputs.empty()) {
    std::vector<std::string> known;
    for (const KerasTensor& t : inputs_) known.push_back(t.name());
    throw InvalidArgumentError(cat("Graph disconnected: the outputs depend on '", tensor.name(),
                                   "', which is not among "
                                   "the inputs given to Model: ",
                                   join(known), ". Add it to the inputs."));
  }
  for (const KerasTensor& source : node->sources()) visit(source);
  order_.push_back(node);
}

void CallGraph::rank_layers() {
  operations_ = order_operations(inputs_, outputs_);
  chain_ = operations_.in_a_row && layers().size() == order_.size() &&
           std::all_of(order_.begin(), order_.end(),
                       [](const auto& node) { return node->sources().size() <= 1; });
  std::set<std::string> names;
  for (const auto& layer : layers()) {
    if (!names.insert(layer->name()).second) {
      throw InvalidArgumentError(cat("The name \"", layer->name(),
                                     "\" is used more than once in the model. All layer "
                                     "names should be unique."));
    }
  }
}

void CallGraph::number_values() {
  for (const auto& node : order_) {
    first_slot_.push_back(num_slots_);
    num_slots_ += node->num_outputs;
  }
}

int CallGraph::slot_of(const KerasTensor& tensor) const {
  const auto found = std::find(order_.begin(), order_.end(), tensor.node());
  if (found == order_.end()) return -1;
  return first_slot_[static_cast<std::size_t>(found - order_.begin())] + tensor.index();
}

bool CallGraph::contains(const CallNode* node) const {
  return std::any_of(order_.begin(), order_.end(),
                     [&](const auto& mine) { return mine.get() == node; });
}

namespace {

// The masks of a call that was given some: those, and for other inputs those that come with them.
MaskList masks_of_call(const CallNode& node, const std::vector<Tensor>& arguments,
                       const std::function<Tensor(const KerasTensor&)>& value_of) {
  const auto& given = node.options.mask.keras_tensors();
  std::vector<Tensor> masks;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    masks.push_back(i < given.size() && given[i] ? value_of(*given[i]) : find_mask(arguments[i]));
  return masks;
}

}  // namespace

std::vector<Tensor> CallGraph::run(std::span<const Tensor> inputs,
                                   const CallOptions& options) const {
  std::vector<Tensor> values(static_cast<std::size_t>(num_slots_));
  const auto value_of = [&](const KerasTensor& tensor) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].is_same(tensor)) return inputs[i];
    }
    return values[static_cast<std::size_t>(slot_of(tensor))];
  };
  for (std::size_t n = 0; n < order_.size(); ++n) {
    const CallNode& node = *order_[n];
    if (node.inputs.empty()) continue;
    std::vector<Tensor> arguments;
    for (const KerasTensor& input : node.inputs) arguments.push_back(value_of(input));
    CallOptions with = node.options;
    if (!with.training) with.training = options.training;
    std::optional<Tensor> mask_of_result;
    if (!with.mask.empty()) {
      with.mask = masks_of_call(node, arguments, value_of);
      // Masks by name are for the layer alone.
      if (mask_form(*node.layer) == MaskForm::kNamed) mask_of_result = find_mask(arguments[0]);
    }
    std::vector<Tensor> results = node.layer->run(std::move(arguments), with);
    if (mask_of_result) attach_mask(results[0], *mask_of_result);
    std::move(results.begin(), results.end(), values.begin() + first_slot_[n]);
  }
  std::vector<Tensor> results;
  for (const KerasTensor& output : outputs_) results.push_back(value_of(output));
  return results;
}

FunctionalImpl::FunctionalImpl(const KerasTensors& inputs, const KerasTensors& outputs,
                               const std::string& name)
    : ModelImpl("Functional", {.name = name}),
      given_input_names_(inputs.names()),
      given_output_names_(outputs.names()),
      graph_(inputs.tensors(), outputs.tensors()) {
  keep_dtypes();
  ensure_built({});
}

void FunctionalImpl::build_many(const std::vector<PartialShape>&) {}  // its layers are built

std::vector<Tensor> FunctionalImpl::call_many(std::span<const Tensor> inputs,
                                              const CallOptions& options) {
  const std::vector<KerasTensor>& wanted = graph_.inputs();
  if (inputs.size() != wanted.size()) {
    throw InvalidArgumentError(cat("Model '", name(), "' has ", wanted.size(),
                                   " inputs but was given ", inputs.size(), "."));
  }
  std::vector<Tensor> values(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    values[i] = adapt_rank(values[i], wanted[i].shape());
    if (!wanted[i].shape().is_compatible(values[i].partial_shape())) {
      throw InvalidArgumentError(cat("Input ", i, " ('", wanted[i].name(), "') of model '", name(),
                                     "' has shape ", shape_text(wanted[i].shape()),
                                     " but was given ", shape_text(values[i].partial_shape()),
                                     "."));
    }
    if (values[i].dtype() != wanted[i].dtype()) values[i] = cast(values[i], wanted[i].dtype());
    if (const Tensor mask = options.mask_of(i); mask.defined()) attach_mask(values[i], mask);
  }
  return graph_.run(values, {.training = options.training});
}

std::vector<Layer> FunctionalImpl::sublayers() const {
  std::vector<Layer> layers;
  for (const auto& layer : graph_.layers()) layers.emplace_back(layer);
  return layers;
}

std::vector<LayerImpl::SavedPart> FunctionalImpl::saved_parts() const {
  std::vector<SavedPart> parts;
  for (const Layer& layer : sublayers())
    parts.push_back({cat("_operations/", graph_.positions()[parts.size()]), {}, layer});
  return parts;
}

std::vector<std::string> FunctionalImpl::input_names() const {
  return given_input_names_.empty() ? ModelImpl::input_names() : given_input_names_;
}

std::vector<std::string> FunctionalImpl::output_names() const {
  if (!given_output_names_.empty()) return given_output_names_;
  std::vector<std::string> names;
  for (const KerasTensor& output : graph_.outputs()) names.push_back(output.name());
  return names;
}

}  // namespace tandem::keras::internal
