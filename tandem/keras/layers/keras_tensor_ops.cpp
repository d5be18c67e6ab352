#include "tandem/keras/keras_tensor_ops.h"

#include "tandem/keras/internal/operation_arguments.h"
#include "tandem/keras/internal/operation_layer.h"
#include "tandem/keras/internal/operations.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::keras {
namespace internal {
namespace {

// The arguments with the inputs among them numbered in their order.
ConfigValue numbered(const ConfigValue& value, std::size_t& next) {
  if (input_index(value)) return input_argument(next++);
  const auto* list = std::get_if<std::shared_ptr<const ConfigList>>(&value);
  if (!list) return value;
  std::vector<ConfigValue> entries;
  for (const ConfigValue& entry : (*list)->values) entries.push_back(numbered(entry, next));
  return config_value(std::move(entries));
}

}  // namespace

ConfigValue input_argument() { return input_argument(0); }
ConfigValue inputs_argument(std::size_t count) {
  return config_value(std::vector<ConfigValue>(count, input_argument()));
}

SavedArgument saved_argument(const Tensor& value) {
  if (!value.defined() || value.is_symbolic() ||
      !(is_floating(value.dtype()) || is_integer(value.dtype()) || value.dtype() == DType::kBool))
    return std::nullopt;
  return tensor_value(value);
}
SavedArgument saved_argument(const Axes& value) {
  if (value.all()) return ConfigValue();
  if (!value.list()) return std::nullopt;
  if (value.list()->size() == 1) return ConfigValue(value.list()->front());
  return ConfigValue(*value.list());
}
SavedArgument saved_argument(DType value) { return dtype_value(value); }

std::vector<KerasTensor> operate(const std::string& name, Operation operation,
                                 const std::vector<KerasTensor>& inputs,
                                 const std::vector<SavedArgument>& arguments) {
  std::size_t next = 0;
  std::vector<SavedArgument> in_order;
  for (const SavedArgument& argument : arguments)
    in_order.push_back(argument ? SavedArgument(numbered(*argument, next)) : argument);
  return make_layer<OperationImpl>(operation_class(name), std::move(operation),
                                   saved_operation(name, in_order, inputs.front().dtype()))
      .outputs(inputs);
}

}  // namespace internal

KerasTensor KerasTensor::operator[](const Index& entry) const { return (*this)[{entry}]; }
KerasTensor KerasTensor::operator[](std::initializer_list<Index> entries) const {
  const std::vector<Index> list(entries);
  return internal::lift_with("get_item", [list](const Tensor& t) { return tandem::index(t, list); },
                             *this, {internal::index_value(list)});
}

}  // namespace tandem::keras
