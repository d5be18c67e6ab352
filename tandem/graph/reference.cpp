#include "tandem/graph/reference.h"

#include "tandem/core/error.h"

namespace tandem {

Array make_reference(Ref<VariableResource> variable) {
  auto info = std::make_shared<ResourceInfo>();
  info->name = variable->name();
  info->type = "Reference";
  info->dtype = variable->dtype();
  info->shape = variable->shape();
  const DType dtype = ref_dtype(variable->dtype());
  Ref<Buffer> buffer = allocate_object_buffer(DType::kResource, 1);
  *static_cast<ResourceHandle*>(buffer->data()) =
      ResourceHandle(std::move(info), std::move(variable));
  void* data = buffer->data();
  return Array(dtype, Shape{}, std::move(buffer), data);
}

VariableResource& referenced_variable(const Array& reference) {
  if (!is_ref(reference.dtype())) {
    throw InvalidArgumentError(cat("A reference to a variable is needed, but a value of dtype ",
                                   reference.dtype(), " was given."));
  }
  // Only make_reference makes arrays of these dtypes.
  return static_cast<VariableResource&>(
      *static_cast<const ResourceHandle*>(reference.raw_data())->resource());
}

VariableResource& variable_input(const Array& input) {
  return is_ref(input.dtype()) ? referenced_variable(input) : variable_of(input);
}

void require_initialized(const Array& input, VariableResource& variable) {
  if (is_ref(input.dtype()) && !variable.initialized()) throw_uninitialized(variable.name());
}

void throw_uninitialized(std::string_view name) {
  throw FailedPreconditionError(cat("Attempting to use uninitialized value ", name,
                                    ". Run the variable's initializer first."));
}

}  // namespace tandem
