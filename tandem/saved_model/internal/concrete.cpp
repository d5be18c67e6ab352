#include "tandem/saved_model/internal/concrete.h"

#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::saved_model::internal {

const ConcreteFunction& Concrete::get() const {
  // Not made if `make` throws: the next call tries again.
  std::call_once(once_, [&] { function_ = make(); });
  return function_;
}

void Concrete::name_specs() {
  const auto add = [](const Value& structure, std::vector<TensorSpec>& specs) {
    for (std::size_t i = 0; i < structure.items().size(); ++i) {
      const std::vector<TensorSpec> parts = structure.items()[i].specs();
      const std::string key = structure.keys().empty() ? cat("output_", i) : structure.keys()[i];
      for (std::size_t p = 0; p < parts.size(); ++p) {
        specs.push_back(parts[p]);
        specs.back().name = parts.size() == 1 ? key : cat(key, ":", p);
      }
    }
  };
  input_specs.clear();
  output_specs.clear();
  // Positional arguments are called as their specs are.
  for (const TensorSpec& spec : inputs[0].specs()) input_specs.push_back(spec);
  add(inputs[1], input_specs);
  if (outputs.kind() == Value::Kind::kDict || outputs.kind() == Value::Kind::kTuple ||
      outputs.kind() == Value::Kind::kList || outputs.kind() == Value::Kind::kNamedTuple) {
    add(outputs, output_specs);
  } else {
    add(Value::tuple({outputs}), output_specs);
  }
}

namespace {

// A plain number where a tensor is wanted.
std::optional<Tensor> as_tensor(const Value& value, DType dtype) {
  const bool number = is_floating(dtype) || is_integer(dtype) || is_complex(dtype);
  switch (value.kind()) {
    case Value::Kind::kTensor: return value.tensor();
    case Value::Kind::kBool:
      return dtype == DType::kBool ? std::optional<Tensor>(Tensor(value.as_bool())) : std::nullopt;
    case Value::Kind::kInt:
      return number ? std::optional<Tensor>(cast(Tensor(value.as_int()), dtype)) : std::nullopt;
    case Value::Kind::kFloat:
      return number && !is_integer(dtype)
                 ? std::optional<Tensor>(cast(scalar<double>(value.as_float()), dtype))
                 : std::nullopt;
    case Value::Kind::kString:
      return dtype == DType::kString ? std::optional<Tensor>(Tensor(value.as_string()))
                                     : std::nullopt;
    default: return std::nullopt;
  }
}

bool is_sequence(const Value& value) {
  return value.kind() == Value::Kind::kList || value.kind() == Value::Kind::kTuple;
}

bool is_number(const Value& value) {
  return value.kind() == Value::Kind::kInt || value.kind() == Value::Kind::kFloat;
}
double number_of(const Value& value) {
  return value.kind() == Value::Kind::kInt ? static_cast<double>(value.as_int()) : value.as_float();
}

bool all_fit(const Value& spec, const Value& value, std::vector<Tensor>& tensors) {
  if (spec.items().size() != value.items().size()) return false;
  for (std::size_t i = 0; i < spec.items().size(); ++i) {
    if (!fits(spec.items()[i], value.items()[i], tensors)) return false;
  }
  return true;
}

}  // namespace

bool fits(const Value& spec, const Value& value, std::vector<Tensor>& tensors) {
  switch (spec.kind()) {
    case Value::Kind::kSpec: {
      const std::optional<Tensor> tensor = as_tensor(value, spec.spec().dtype);
      if (!tensor || !tensor->defined()) return false;
      const bool any = spec.spec().dtype == DType::kInvalid;
      if (!any && tensor->dtype() != spec.spec().dtype) return false;
      if (!tensor->partial_shape().is_compatible(spec.spec().shape)) return false;
      tensors.push_back(*tensor);
      return true;
    }
    case Value::Kind::kCompositeSpec:
      return value.kind() == Value::Kind::kComposite && value.type() == spec.type() &&
             all_fit(spec, value, tensors);
    case Value::Kind::kList:
    case Value::Kind::kTuple: return is_sequence(value) && all_fit(spec, value, tensors);
    case Value::Kind::kDict:
      return value.kind() == spec.kind() && value.keys() == spec.keys() &&
             all_fit(spec, value, tensors);
    case Value::Kind::kNamedTuple:
      return (is_sequence(value) || value.keys() == spec.keys()) && all_fit(spec, value, tensors);
    case Value::Kind::kInt:
    case Value::Kind::kFloat: return is_number(value) && number_of(spec) == number_of(value);
    case Value::Kind::kTensor:
    case Value::Kind::kComposite: return false;
    default: return value.kind() == spec.kind() && value.to_string() == spec.to_string();
  }
}

}  // namespace tandem::saved_model::internal
