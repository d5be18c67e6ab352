#include "tests/reference/adapter.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <span>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

namespace reference {
namespace {

using tandem::Array;
using tandem::AttrMap;
using tandem::AttrValue;
using tandem::DType;
using tandem::GradientTape;
using tandem::PartialShape;
using tandem::Shape;
using tandem::Tensor;
using Tensors = std::vector<Tensor>;
using Body = std::function<Tensors(std::span<const Tensor>)>;

// --- Values and attributes ---------------------------------------------------------------------

DType dtype_of(const std::string& name) {
  const auto found = tandem::parse_dtype(name);
  if (!found) throw std::runtime_error("no dtype named " + name);
  return *found;
}

Tensor to_tensor(const Value& value) {
  Array array(dtype_of(value.dtype), Shape(value.shape));
  if (array.dtype() == DType::kString) {
    std::copy(value.strings.begin(), value.strings.end(), array.data<std::string>());
  } else if (!value.bytes.empty()) {
    std::memcpy(array.raw_data(), value.bytes.data(), value.bytes.size());
  }
  return Tensor(std::move(array));
}

Value to_value(const Tensor& tensor) {
  Value value;
  if (!tensor.defined()) return value;
  const Array& array = tensor.array();
  value.dtype = tandem::dtype_name(array.dtype());
  value.shape = array.shape().to_vector();
  if (array.dtype() == DType::kString) {
    const auto strings = array.values<std::string>();
    value.strings.assign(strings.begin(), strings.end());
  } else if (!tandem::is_object(array.dtype()) && array.num_bytes() > 0) {
    value.bytes.assign(static_cast<const char*>(array.raw_data()), array.num_bytes());
  }
  return value;
}

std::vector<Value> to_values(const Tensors& tensors) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) values.push_back(to_value(tensor));
  return values;
}

PartialShape to_shape(const nlohmann::json& value) {
  return value.is_null() ? PartialShape::unknown()
                         : PartialShape(value.get<std::vector<std::int64_t>>());
}

template <class T, class Make>
AttrValue list_of(const nlohmann::json& values, Make make) {
  std::vector<T> list;
  for (const auto& value : values) list.push_back(make(value));
  return AttrValue(std::move(list));
}

AttrValue to_attr(const Attribute& attribute) {
  const std::string& type = attribute.type;
  const nlohmann::json& value = attribute.value;
  const auto dtype = [](const nlohmann::json& name) { return dtype_of(name.get<std::string>()); };
  const auto plain = [](const nlohmann::json& item) { return item; };
  if (type == "int") return value.get<std::int64_t>();
  if (type == "float") return value.get<float>();
  if (type == "bool") return value.get<bool>();
  if (type == "string") return value.get<std::string>();
  if (type == "type") return dtype(value);
  if (type == "shape") return to_shape(value);
  if (type == "list(int)") return list_of<std::int64_t>(value, plain);
  if (type == "list(float)") return list_of<float>(value, plain);
  if (type == "list(string)") return list_of<std::string>(value, plain);
  if (type == "list(type)") return list_of<DType>(value, dtype);
  if (type == "list(shape)") return list_of<PartialShape>(value, to_shape);
  throw std::runtime_error("no attribute of type " + type);
}

/// What the case writes, and the lengths of list inputs, which flat inputs do not have. Types are
/// left to be inferred.
AttrMap to_attrs(const Call& call) {
  AttrMap attrs;
  for (const auto& [name, attribute] : call.attributes) attrs.set(name, to_attr(attribute));
  for (const auto& [name, attribute] : call.inferred) {
    if (attribute.type != "type") attrs.set(name, to_attr(attribute));
  }
  return attrs;
}

// --- Errors ------------------------------------------------------------------------------------

template <class Function>
auto refusing(Function function) {
  try {
    return function();
  } catch (const tandem::Error& error) {
    throw Refusal(std::string(tandem::code_name(error.code())), error.what());
  } catch (const std::exception& error) {
    throw Refusal("", error.what());
  }
}

// --- Variables ---------------------------------------------------------------------------------

/// What a reference refers to; anything else as it is.
Tensor value_of(const Tensor& tensor) {
  return tandem::is_ref(tensor.dtype()) ? tandem::raw_op("_ReadReference", {tensor}).at(0) : tensor;
}

/// Variables of one call; forgotten with it.
class Variables {
 public:
  Variables() = default;
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const Made& made : made_) {
      if (tandem::is_ref(made.handle.dtype())) continue;
      try {
        tandem::raw_op("DestroyResourceOp", {made.handle}, {{"ignore_lookup_error", true}});
      } catch (const std::exception&) {  // The case may have destroyed it; the next has names of
                                         // its own.
      }
    }
  }

  Tensor make(const Value& value) {
    static std::atomic<int> count{0};
    const AttrMap attrs{{"dtype", dtype_of(value.dtype)},
                        {"shape", PartialShape(value.shape)},
                        {"shared_name", "reference_" + std::to_string(count++)}};
    const Tensor handle = tandem::raw_op("VarHandleOp", {}, attrs).at(0);
    made_.push_back({handle, dtype_of(value.dtype)});
    if (value.has_data) tandem::raw_op("AssignVariableOp", {handle, to_tensor(value)});
    return handle;
  }

  /// A variable that is forwarded by reference.
  Tensor make_reference(const Value& value) {
    const AttrMap attrs{{"dtype", dtype_of(value.dtype)}, {"shape", PartialShape::unknown()}};
    const Tensor reference = tandem::raw_op("TemporaryVariable", {}, attrs).at(0);
    made_.push_back({reference, dtype_of(value.dtype)});
    if (value.has_data) tandem::raw_op("Assign", {reference, to_tensor(value)});
    return reference;
  }

  std::vector<Value> read() const {
    std::vector<Value> values;
    for (const Made& made : made_) {
      if (tandem::is_ref(made.handle.dtype())) {
        const bool set = tandem::raw_op("IsVariableInitialized", {made.handle})[0].item<bool>();
        values.push_back(set ? to_value(value_of(made.handle)) : Value{});
        continue;
      }
      const bool set = tandem::raw_op("VarIsInitializedOp", {made.handle}).at(0).item<bool>();
      values.push_back(
          set ? to_value(
                    tandem::raw_op("ReadVariableOp", {made.handle}, {{"dtype", made.dtype}}).at(0))
              : Value{});
    }
    return values;
  }

 private:
  struct Made {
    Tensor handle;
    DType dtype;
  };
  std::vector<Made> made_;
};

// --- Calls -------------------------------------------------------------------------------------

/// The inputs of a call as tensors: those that are arguments when it is traced, and those that stay
/// constants.
struct Arguments {
  Tensors all;                         ///< constants in place, the rest filled in by `with`
  std::vector<std::size_t> positions;  ///< of the arguments in `all`
  Tensors arguments;

  Tensors with(std::span<const Tensor> given) const {
    Tensors result;
    // Made again, so that inside a trace they are constants of it and not values from outside.
    for (const Tensor& tensor : all) {
      result.push_back(tensor.dtype() == DType::kResource ? tensor : Tensor(tensor.array()));
    }
    for (std::size_t i = 0; i < positions.size(); ++i) result[positions[i]] = given[i];
    return result;
  }
};

/// Where only shapes are asked for, everything that is no argument of TensorFlow's own trace stays
/// in place: literals, strings and variables.
Arguments arguments_of(const Call& call, Variables& variables, bool for_shapes) {
  Arguments result;
  for (const Input& input : call.inputs) {
    for (const Value& value : input.values) {
      const bool variable = input.kind == Input::Kind::kVariable;
      const Tensor tensor = variable ? variables.make(value)
                            : input.kind == Input::Kind::kReference
                                ? variables.make_reference(value)
                                : to_tensor(value);
      const bool constant = for_shapes
                                ? value.literal || variable || tensor.dtype() == DType::kString
                                : value.literal && !tandem::is_differentiable(tensor.dtype());
      if (!constant) {
        result.positions.push_back(result.all.size());
        result.arguments.push_back(tensor);
      }
      result.all.push_back(tensor);
    }
  }
  return result;
}

tandem::ConcreteFunction traced(const Tensors& arguments, const Body& body) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const Tensor& argument : arguments) {
    dtypes.push_back(argument.dtype());
    shapes.push_back(tandem::is_ref(argument.dtype()) ? PartialShape::unknown()
                                                      : argument.partial_shape());
  }
  return tandem::trace_function("reference", dtypes, shapes, body);
}

Tensors evaluate(const Tensors& arguments, const Body& body, Mode mode) {
  return mode == Mode::kEager ? body(arguments) : traced(arguments, body).call(arguments);
}

/// Moves the tensors that are defined out of the list and says where they were.
Tensors only_defined(const Tensors& tensors, std::vector<bool>& defined) {
  Tensors result;
  defined.clear();
  for (const Tensor& tensor : tensors) {
    defined.push_back(tensor.defined());
    if (tensor.defined()) result.push_back(tensor);
  }
  return result;
}

// --- Gradients ---------------------------------------------------------------------------------

/// One evaluation of a call with its gradients; `body` fills in which results are there.
class Differentiation {
 public:
  Differentiation(const Call& call, const std::vector<Value>& upstream,
                  const std::vector<Value>* upstream2)
      : call_(call), inputs_(arguments_of(call, variables_, false)), second_(upstream2 != nullptr) {
    arguments_ = inputs_.arguments;
    add(upstream, upstream_);
    if (upstream2) add(*upstream2, upstream2_);
  }

  Gradients evaluate(Mode mode) {
    const Body body = [this](std::span<const Tensor> arguments) { return this->body(arguments); };
    Tensors results = reference::evaluate(arguments_, body, mode);
    std::size_t next = 0;
    const auto take = [&](const std::vector<bool>& defined) {
      std::vector<Value> values;
      for (const bool there : defined)
        values.push_back(there ? to_value(results.at(next++)) : Value{});
      return values;
    };
    Gradients gradients;
    gradients.outputs = take(outputs_defined_);
    gradients.gradients = take(first_defined_);
    if (second_) {
      gradients.second = take(second_defined_);
      gradients.towards_upstream = take(towards_upstream_defined_);
    }
    return gradients;
  }

 private:
  using Positions =
      std::vector<std::optional<std::size_t>>;  // in arguments_; nothing where there is no value

  void add(const std::vector<Value>& values, Positions& positions) {
    for (const Value& value : values) {
      positions.push_back(value.dtype.empty() ? std::nullopt : std::optional(arguments_.size()));
      if (!value.dtype.empty()) arguments_.push_back(to_tensor(value));
    }
  }

  static bool is_source(const Tensor& tensor) {
    return tandem::is_floating(tensor.dtype()) || tandem::is_complex(tensor.dtype());
  }

  Tensors body(std::span<const Tensor> arguments) {
    const Tensors inputs = inputs_.with(arguments);
    std::vector<std::size_t> places;
    Tensors sources;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_source(inputs[i])) continue;
      places.push_back(i);
      sources.push_back(inputs[i]);
    }
    GradientTape outer(GradientTape::Options{.persistent = true});
    GradientTape tape(GradientTape::Options{.persistent = true});
    for (const Tensor& source : sources) {
      outer.watch(source);
      tape.watch(source);
    }
    const Tensors outputs = tandem::raw_op(call_.op, inputs, to_attrs(call_));
    Tensors targets, upstream;
    for (std::size_t i = 0; i < upstream_.size() && i < outputs.size(); ++i) {
      if (!upstream_[i]) continue;
      targets.push_back(outputs[i]);
      upstream.push_back(arguments[*upstream_[i]]);
      outer.watch(upstream.back());
    }
    const Tensors gradients = tape.gradient(targets, sources, upstream);
    Tensors results = only_defined(outputs, outputs_defined_);
    append(results, spread(gradients, places, inputs.size()), first_defined_);
    if (second_)
      differentiate_again(arguments, outer, sources, upstream, gradients, places, inputs.size(),
                          results);
    return results;
  }

  void differentiate_again(std::span<const Tensor> arguments, GradientTape& outer,
                           const Tensors& sources, const Tensors& upstream,
                           const Tensors& gradients, const std::vector<std::size_t>& places,
                           std::size_t num_inputs, Tensors& results) {
    Tensors targets, weights, second_sources = sources;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k].defined() || !upstream2_.at(places[k])) continue;
      targets.push_back(gradients[k]);
      weights.push_back(arguments[*upstream2_[places[k]]]);
    }
    second_sources.insert(second_sources.end(), upstream.begin(), upstream.end());
    const Tensors all = outer.gradient(targets, second_sources, weights);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(sources.size());
    append(results, spread({all.begin(), middle}, places, num_inputs), second_defined_);
    Tensors towards(upstream_.size());
    std::size_t next = sources.size();
    for (std::size_t i = 0; i < upstream_.size(); ++i) {
      if (upstream_[i]) towards[i] = all[next++];
    }
    append(results, towards, towards_upstream_defined_);
  }

  static Tensors spread(const Tensors& gradients, const std::vector<std::size_t>& places,
                        std::size_t count) {
    Tensors result(count);
    for (std::size_t k = 0; k < places.size(); ++k) result[places[k]] = gradients[k];
    return result;
  }

  static void append(Tensors& results, const Tensors& more, std::vector<bool>& defined) {
    const Tensors there = only_defined(more, defined);
    results.insert(results.end(), there.begin(), there.end());
  }

  const Call& call_;
  Variables variables_;
  Arguments inputs_;
  bool second_;
  Tensors arguments_;
  Positions upstream_, upstream2_;
  std::vector<bool> outputs_defined_, first_defined_, second_defined_, towards_upstream_defined_;
};

PartialShape weakened(const PartialShape& shape, Knowledge knowledge) {
  switch (knowledge) {
    case Knowledge::kShapes: return shape;
    case Knowledge::kRanks: return PartialShape::unknown_of_rank(shape.rank());
    case Knowledge::kNothing: break;
  }
  return PartialShape::unknown();
}

}  // namespace

bool has_op(const std::string& name) {
  return tandem::Runtime::current().ops().find(name) != nullptr;
}

namespace {

// Whether a kernel takes the types that a call's attributes name.
bool takes(const tandem::KernelDecl& kernel, const Call& call) {
  for (const tandem::TypeConstraint& wanted : kernel.types) {
    if (!wanted.attr) continue;
    for (const auto* attributes : {&call.attributes, &call.inferred}) {
      const auto found = attributes->find(wanted.attr);
      if (found == attributes->end() || found->second.type != "type") continue;
      if (!wanted.types.contains(*to_attr(found->second).get_if<tandem::DType>())) return false;
    }
  }
  return true;
}

}  // namespace

bool has_kernel(const Call& call, const std::string& kernel_class) {
  for (const tandem::KernelDecl* kernel : tandem::Runtime::current().kernels().all(call.op)) {
    // One that is only declared runs on no device of this process.
    if (kernel->kernel_class == kernel_class && kernel->name != std::string_view("declared") &&
        takes(*kernel, call))
      return true;
  }
  return false;
}

Result run(const Call& call, Mode mode) {
  return refusing([&] {
    Variables variables;
    const Arguments inputs = arguments_of(call, variables, false);
    const Body body = [&](std::span<const Tensor> arguments) {
      return tandem::raw_op(call.op, inputs.with(arguments), to_attrs(call));
    };
    Result result;
    Tensors outputs = evaluate(inputs.arguments, body, mode);
    for (Tensor& output : outputs) output = value_of(output);
    result.outputs = to_values(outputs);
    result.variables = variables.read();
    return result;
  });
}

std::vector<std::vector<Value>> run_afresh(const Call& call, int count, Mode mode) {
  return refusing([&] {
    tandem::Runtime fresh(tandem::Runtime::Options{1, 1});
    const tandem::RuntimeScope scope(fresh);
    Variables variables;
    const Arguments inputs = arguments_of(call, variables, false);
    const Body body = [&](std::span<const Tensor> arguments) {
      return tandem::raw_op(call.op, inputs.with(arguments), to_attrs(call));
    };
    std::vector<std::vector<Value>> runs;
    if (mode == Mode::kEager) {
      for (int i = 0; i < count; ++i) runs.push_back(to_values(body(inputs.arguments)));
    } else {
      const tandem::ConcreteFunction function = traced(inputs.arguments, body);
      for (int i = 0; i < count; ++i) runs.push_back(to_values(function.call(inputs.arguments)));
    }
    return runs;
  });
}

Gradients differentiate(const Call& call, const std::vector<Value>& upstream,
                        const std::vector<Value>* upstream2, Mode mode) {
  return refusing([&] { return Differentiation(call, upstream, upstream2).evaluate(mode); });
}

std::vector<KnownShape> infer_shapes(const Call& call, Knowledge knowledge) {
  return refusing([&] {
    Variables variables;
    const Arguments inputs = arguments_of(call, variables, true);
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;
    for (const Tensor& argument : inputs.arguments) {
      dtypes.push_back(argument.dtype());
      shapes.push_back(weakened(argument.partial_shape(), knowledge));
    }
    std::vector<KnownShape> found;
    tandem::trace_function("shapes", dtypes, shapes, [&](std::span<const Tensor> arguments) {
      Tensors outputs = tandem::raw_op(call.op, inputs.with(arguments), to_attrs(call));
      for (const Tensor& output : outputs) {
        const PartialShape shape = output.partial_shape();
        found.push_back(shape.has_rank() ? KnownShape(shape.dims()) : std::nullopt);
      }
      return outputs;
    });
    return found;
  });
}

}  // namespace reference
