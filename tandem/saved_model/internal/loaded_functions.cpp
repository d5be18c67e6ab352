#include "tandem/saved_model/internal/loaded_functions.h"

#include <algorithm>
#include <atomic>

#include "tandem/core/error.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/saved_model/internal/structured_value.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;

// Functions of every loaded model name their resources differently.
std::string next_suffix() {
  static std::atomic<std::uint64_t> count{0};
  return cat("_load_", ++count);
}

std::shared_ptr<proto::GraphDef> graph_of(const std::shared_ptr<proto::MetaGraphDef>& meta) {
  return {meta, &meta->graph_def.make()};
}

}  // namespace

LoadedFunctions::LoadedFunctions(std::shared_ptr<proto::MetaGraphDef> meta, std::string name)
    : meta_(std::move(meta)),
      name_(std::move(name)),
      library_(graph_of(meta_),
               {.name = name_,
                .shared_name_suffix = next_suffix(),
                .gradient = [this](const std::string& op_type, const std::string& body) {
                  return gradient(op_type, body);
                }}) {
  for (const auto& registered : meta_->graph_def->library->registered_gradients)
    gradients_[registered.registered_op_type] = registered.gradient_func;
}

void LoadedFunctions::set_value(int object, Tensor value) {
  std::lock_guard lock(mutex_);
  values_[object] = std::move(value);
}

Tensor LoadedFunctions::value(int object) {
  {
    std::lock_guard lock(mutex_);
    if (const auto known = values_.find(object); known != values_.end()) return known->second;
  }
  const auto count = static_cast<std::int64_t>(objects().nodes.size());
  if (object < 0 || object >= count)
    throw InvalidArgumentError(
        cat("A function of ", name_, " captured object ", object, " of ", count, "."));
  const proto::SavedObject& node = objects().nodes[static_cast<std::size_t>(object)];
  if (node.which_kind != proto::SavedObject::Case::kConstant) {
    throw InvalidArgumentError(
        cat("A function of ", name_, " captured object ", object, ", which has no value."));
  }
  Tensor value = constant(node.constant->operation);
  std::lock_guard lock(mutex_);
  return values_.emplace(object, std::move(value)).first->second;
}

// Constants that functions captured stand in the graph of TensorFlow 1.
Tensor LoadedFunctions::constant(const std::string& operation) const {
  constexpr std::size_t kMaxFilled = std::size_t{1} << 30;
  const auto& nodes = meta_->graph_def->node;
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const auto& node) { return node.name == operation; });
  if (found == nodes.end() || found->op != "Const")
    throw InvalidArgumentError(cat("The graph of ", name_, " has no constant '", operation, "'."));
  const auto value = found->attr.find("value");
  if (value == found->attr.end() || value->second.which_value != proto::AttrValue::Case::kTensor)
    throw InvalidArgumentError(cat("The constant '", operation, "' of ", name_, " has no value."));
  io::DecodedTensor decoded = io::decode_tensor(*value->second.tensor, kMaxFilled);
  if (decoded.shape)
    throw InvalidArgumentError(cat("The constant '", operation, "' of ", name_, " is too large."));
  return Tensor(std::move(decoded.value));
}

std::shared_ptr<Concrete> LoadedFunctions::concrete(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    if (const auto known = concrete_.find(name); known != concrete_.end()) {
      if (auto concrete = known->second.lock()) return concrete;
    }
  }
  const auto found = objects().concrete_functions.find(name);
  if (found == objects().concrete_functions.end())
    throw InvalidArgumentError(cat(name_, " does not say what function '", name, "' takes."));
  auto concrete = std::make_shared<Concrete>();
  concrete->name = name;
  try {
    concrete->inputs = decode(*found->second.canonicalized_input_signature);
    concrete->outputs = decode(*found->second.output_signature);
  } catch (const NotFoundError& error) {
    throw InvalidArgumentError(
        cat("The signature of function '", name, "' of ", name_, " is malformed: ", error.what()));
  } catch (const Error& error) {
    throw_error(error.code(), cat("The signature of function '", name, "' of ", name_,
                                  " cannot be read: ", error.what()));
  }
  const Value& inputs = concrete->inputs;
  if (inputs.kind() != Value::Kind::kTuple || inputs.items().size() != 2 ||
      inputs[1].kind() != Value::Kind::kDict) {
    throw InvalidArgumentError(cat("The signature of function '", name, "' of ", name_,
                                   " is no pair of arguments: ", inputs.to_string()));
  }
  concrete->name_specs();
  concrete->make = [self = shared_from_this(), it = concrete.get()] {
    return self->import(it->name, *it);
  };
  std::lock_guard lock(mutex_);
  concrete_[name] = concrete;
  return concrete;
}

ConcreteFunction LoadedFunctions::import(const std::string& name, const Concrete& concrete) {
  const auto& proto = objects().concrete_functions.at(name);
  if (!library_.find(name))
    throw InvalidArgumentError(cat("The library of ", name_, " has no function '", name, "'."));
  const FunctionRef function = library_.get(name);
  std::vector<DType> expected;
  for (const TensorSpec& spec : concrete.inputs.specs()) expected.push_back(spec.dtype);
  std::vector<Tensor> captures;
  for (const int object : proto.bound_inputs) {
    captures.push_back(value(object));
    expected.push_back(captures.back().dtype());
  }
  const std::vector<DType> args = function->arg_dtypes();
  bool fit = args.size() == expected.size();
  for (std::size_t i = 0; fit && i < args.size(); ++i)
    fit = args[i] == expected[i] || expected[i] == DType::kInvalid;
  const std::vector<TensorSpec> results = concrete.outputs.specs();
  const std::vector<DType> returned = function->result_dtypes();
  bool results_fit = returned.size() == results.size();
  for (std::size_t i = 0; results_fit && i < returned.size(); ++i)
    results_fit = returned[i] == results[i].dtype || results[i].dtype == DType::kInvalid;
  if (!fit || !results_fit) {
    throw InvalidArgumentError(cat(
        "Function '", name, "' of ", name_, " takes ", AttrValue(args).to_string(), " and returns ",
        AttrValue(returned).to_string(), ", but its signature is ", concrete.inputs.to_string(),
        " -> ", concrete.outputs.to_string(), " with ", captures.size(), " captured values."));
  }
  return {with_shapes(function, concrete, captures), std::move(captures)};
}

// What the signature and the variables say of shapes helps to plan. A trace notes the shape of a
// variable on what reads it.
FunctionRef LoadedFunctions::with_shapes(const FunctionRef& function, const Concrete& concrete,
                                         const std::vector<Tensor>& captures) const {
  MutableFunction shaped(*function);
  const std::vector<TensorSpec> specs = concrete.inputs.specs();
  for (std::size_t i = 0; i < specs.size(); ++i)
    shaped.graph.set_output_shape(shaped.args[i], 0, specs[i].shape);
  std::map<const Node*, PartialShape> variables;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    Node* arg = shaped.args[specs.size() + i];
    if (captures[i].dtype() != DType::kResource) {
      shaped.graph.set_output_shape(arg, 0, PartialShape(captures[i].shape()));
      continue;
    }
    shaped.graph.set_output_shape(arg, 0, PartialShape::scalar());
    const auto* variable = dynamic_cast<const VariableResource*>(
        captures[i].array().data<ResourceHandle>()->resource());
    if (variable) variables[arg] = variable->shape();
  }
  for (const auto& node : shaped.graph.nodes()) {
    if (node->op().name != "ReadVariableOp" && node->op().name != "ResourceGather") continue;
    const auto read = variables.find(node->inputs()[0].node);
    if (read != variables.end()) shaped.graph.set_attr(node.get(), "_shape", read->second);
  }
  try {
    shaped.graph.infer_shapes();
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(cat("Function '", function->name(), "' of ", name_,
                                   " does not fit its signature ", concrete.inputs.to_string(),
                                   ": ", error.what()));
  }
  return std::make_shared<const tandem::Function>(
      function->name(), std::move(shaped.graph), std::move(shaped.args), std::move(shaped.results),
      std::move(shaped.control_results), function->may_optimize());
}

// ---- Custom gradients ----

const io::ImportedGradient* LoadedFunctions::gradient(const std::string& op_type,
                                                      const std::string& body) {
  // Calls of functions name types of their own, of which TensorFlow makes the gradients.
  if (!op_type.starts_with("CustomGradient-") && !gradients_.contains(op_type)) return nullptr;
  const auto key = std::pair(op_type, body);
  const auto known = found_gradients_.find(key);
  if (known != found_gradients_.end()) return &known->second;
  const auto registered = gradients_.find(op_type);
  return &found_gradients_
              .emplace(key, registered == gradients_.end()
                                ? io::ImportedGradient{}
                                : find_gradient(registered->second, body))
              .first->second;
}

io::ImportedGradient LoadedFunctions::find_gradient(const std::string& function,
                                                    const std::string& body) const {
  const auto proto = objects().concrete_functions.find(function);
  if (proto == objects().concrete_functions.end() || !library_.find(function))
    throw InvalidArgumentError(cat(name_, " does not hold the gradient '", function, "'."));
  io::ImportedGradient gradient;
  gradient.function = function;
  const auto outer = objects().concrete_functions.find(body);
  const proto::FunctionDef* outer_def = library_.find(body);
  for (const int object : proto->second.bound_inputs) {
    if (object < 0 || static_cast<std::size_t>(object) >= objects().nodes.size())
      throw InvalidArgumentError(
          cat("The gradient '", function, "' captured object ", object, "."));
    const proto::SavedObject& node = objects().nodes[static_cast<std::size_t>(object)];
    if (node.which_kind == proto::SavedObject::Case::kCapturedTensor) {
      // A tensor of another body is out of reach: taking the gradient is an error then.
      if (node.captured_tensor->concrete_function != body) return {};
      gradient.captures.push_back(node.captured_tensor->name);
      continue;
    }
    if (outer == objects().concrete_functions.end() || !outer_def) return {};
    const auto& bound = outer->second.bound_inputs;
    const auto& args = outer_def->signature->input_arg;
    const auto at = std::find(bound.begin(), bound.end(), object);
    if (at == bound.end() || bound.size() > args.size()) return {};
    const auto index = args.size() - bound.size() + static_cast<std::size_t>(at - bound.begin());
    gradient.captures.push_back(args[index].name);
  }
  const Value outputs = decode(*proto->second.output_signature);
  if (outputs.kind() == Value::Kind::kList || outputs.kind() == Value::Kind::kTuple) {
    for (const Value& output : outputs.items()) gradient.gives.push_back(!output.is_none());
  }
  return gradient;
}

}  // namespace tandem::saved_model::internal
