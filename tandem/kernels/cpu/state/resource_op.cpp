#include "tandem/kernels/cpu/state/resource_op.h"

#include <mutex>

namespace tandem::cpu {

void set_named_handle(KernelContext& c, const std::string& container, const std::string& name) {
  const Shape shape{2};
  Array names(DType::kString, shape);
  names.data<std::string>()[0] = container;
  names.data<std::string>()[1] = name;
  auto variable = make_ref<VariableResource>(name, DType::kString, shape);
  variable->assign(std::move(names));
  c.set_output(0, make_reference(std::move(variable)));
}

Ref<Resource> resource_input(const KernelContext& c) {
  const Array& handle = c.input(0);
  if (is_ref(handle.dtype())) {
    VariableResource& variable = referenced_variable(handle);
    std::lock_guard lock(variable.mutex());
    const Array names = variable.value();
    if (names.dtype() != DType::kString || names.num_elements() != 2) {
      throw InvalidArgumentError(
          cat("Resource handle must have 2 elements, but had shape: ", names.shape()));
    }
    const auto* text = names.data<std::string>();
    return c.resources().lookup(text[0], text[1]);
  }
  if (handle.num_elements() != 1) {
    throw InvalidArgumentError(cat("A handle must be a scalar, but has shape ", handle.shape()));
  }
  const ResourceHandle& element = *handle.data<ResourceHandle>();
  element.check_alive();
  return Ref<Resource>(element.resource());
}

}  // namespace tandem::cpu
