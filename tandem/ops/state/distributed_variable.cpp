#include "tandem/ops/distributed_variable.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/variable_state.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

// A part whose device fits what the innermost scope asks for, or -1.
int part_asked_for(const std::vector<Variable>& parts) {
  const std::vector<std::string>& scopes = thread_context().devices;
  if (scopes.empty() || scopes.back().empty()) return -1;
  const DeviceSpec wanted = DeviceSpec::parse(scopes.back());
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const Variable& part) {
    return wanted.matches(DeviceSpec::parse(part.device()));
  });
  return at == parts.end() ? -1 : static_cast<int>(at - parts.begin());
}

void check_parts(const std::vector<Variable>& parts, VariableAggregation aggregation) {
  if (parts.empty())
    throw InvalidArgumentError("A distributed variable needs one component at least.");
  for (const Variable& part : parts) {
    if (!part.defined()) {
      throw InvalidArgumentError("A component of a distributed variable is an undefined Variable.");
    }
    if (is_distributed(part)) {
      throw InvalidArgumentError(cat("Component '", part.name(),
                                     "' of a distributed variable is made of components itself."));
    }
    if (part.dtype() != parts[0].dtype() || !(part.shape() == parts[0].shape())) {
      throw InvalidArgumentError(cat("The components of distributed variable '", parts[0].name(),
                                     "' differ: ", parts[0].dtype(), parts[0].shape(), " and ",
                                     part.dtype(), part.shape(), "."));
    }
  }
  const DType dtype = parts[0].dtype();
  if (aggregation == VariableAggregation::kMean && !is_floating(dtype) && !is_complex(dtype)) {
    throw InvalidArgumentError(cat("Variable '", parts[0].name(), "' of ", dtype,
                                   " cannot be the mean of its components."));
  }
}

}  // namespace

const Variable& DistributedVariables::here(const Components& components) {
  return components.parts[static_cast<std::size_t>(std::max(part_asked_for(components.parts), 0))];
}

Tensor DistributedVariables::read(const Components& components) {
  const bool sum = components.aggregation == VariableAggregation::kSum;
  if (!sum && components.aggregation != VariableAggregation::kMean)
    return here(components).read_value();
  std::vector<Tensor> values;
  for (const Variable& part : components.parts) values.push_back(part.read_value());
  Tensor total = values.size() == 1 ? values.front() : add_n(values);
  if (sum) return total;
  return total / cast(Tensor(static_cast<double>(values.size())), total.dtype());
}

void DistributedVariables::assign(const Components& components, const Tensor& value) {
  if (components.aggregation == VariableAggregation::kOnRead) {
    here(components).assign(value);
    return;
  }
  const bool sum = components.aggregation == VariableAggregation::kSum;
  const auto& parts = components.parts;
  const DType dtype = parts[0].dtype();
  if (sum && !is_floating(dtype) && !is_complex(dtype)) {
    // The first holds it all, since integers cannot be divided evenly.
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].assign(i == 0 ? value : value - value);
    return;
  }
  const Tensor share =
      sum ? value / cast(Tensor(static_cast<double>(parts.size())), value.dtype()) : value;
  for (const Variable& part : parts) part.assign(share);
}

void DistributedVariables::add(const Components& components, const Tensor& delta, int sign) {
  const auto change = [&](const Variable& part) {
    if (sign > 0) {
      part.assign_add(delta);
    } else {
      part.assign_sub(delta);
    }
  };
  if (components.aggregation != VariableAggregation::kMirrored) return change(here(components));
  for (const Variable& part : components.parts) change(part);
}

Variable DistributedVariables::make(std::vector<Variable> parts, VariableAggregation aggregation) {
  check_parts(parts, aggregation);
  // What a plain variable says of itself is the first component's.
  auto state = std::make_shared<Variable::State>(parts.front().state());
  state->components = std::make_shared<const Components>(Components{std::move(parts), aggregation});
  Variable variable;
  variable.state_ = std::move(state);
  return variable;
}

const DistributedVariables::Components* DistributedVariables::of(const Variable& variable) {
  return variable.state().components.get();
}

Variable make_distributed_variable(std::vector<Variable> components,
                                   VariableAggregation aggregation) {
  return DistributedVariables::make(std::move(components), aggregation);
}

std::vector<Variable> components_of(const Variable& variable) {
  const auto* components = DistributedVariables::of(variable);
  return components ? components->parts : std::vector<Variable>{variable};
}

bool is_distributed(const Variable& variable) {
  return DistributedVariables::of(variable) != nullptr;
}

}  // namespace tandem
