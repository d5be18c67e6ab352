#include "tandem/graph/resource_manager.h"

#include "tandem/core/error.h"

namespace tandem {

Ref<Resource> ResourceManager::lookup_or_create(std::string_view container, std::string_view name,
                                                const std::function<Ref<Resource>()>& make) {
  std::lock_guard lock(mutex_);
  Ref<Resource>& slot = resources_[Key(container, name)];
  if (!slot) slot = make();
  return slot;
}

Ref<Resource> ResourceManager::lookup(std::string_view container, std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto it = resources_.find(Key(container, name));
  return it == resources_.end() ? Ref<Resource>() : it->second;
}

void ResourceManager::remove(std::string_view container, std::string_view name) {
  std::lock_guard lock(mutex_);
  resources_.erase(Key(container, name));
}

void ResourceManager::clear() {
  std::lock_guard lock(mutex_);
  resources_.clear();
}

Array& VariableResource::value() {
  if (!value_.valid()) {
    throw FailedPreconditionError(
        cat("Could not find variable ", name_,
            ". It has no value yet: assign one (run its initializer) before it is read."));
  }
  if (!value_.on_host() && value_.buffer()->space()->device == nullptr) {
    throw FailedPreconditionError(
        cat("Variable '", name_,
            "' was kept on a device that is gone with its runtime. Keep the "
            "td::Runtime as long as its variables are used."));
  }
  return value_;
}

Array& VariableResource::writable_value() {
  Array& current = value();
  if (!current.writable_in_place()) {
    current = current.clone();
    name_holder();
  }
  return current;
}

void VariableResource::assign(Array value, bool validate_shape) {
  if (base_dtype(value.dtype()) != dtype_) {
    throw InvalidArgumentError(cat("Trying to assign variable '", name_, "' of dtype ", dtype_,
                                   " a value of dtype ", value.dtype(), ". Use td::cast."));
  }
  if (validate_shape && !shape_.is_compatible(value.shape())) {
    throw InvalidArgumentError(
        cat("Cannot assign value to variable '", name_, "': Shape mismatch. The variable shape ",
            shape_, ", and the assigned value shape ", value.shape(), " are incompatible."));
  }
  value_ = std::move(value);
  name_holder();
}

// Device memory that runs out is reported by variable.
void VariableResource::name_holder() {
  if (!value_.on_host()) value_.buffer()->set_holder(cat("variable '", name_, "'"));
}

std::string VariableResource::debug_string() const {
  return cat("variable ", name_, ": ", dtype_, shape_);
}

VariableResource& variable_of(const Array& handle) {
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) {
    throw InvalidArgumentError(cat("A variable handle must be a resource scalar but is ",
                                   handle.dtype(), handle.shape(), "."));
  }
  const ResourceHandle& element = *handle.data<ResourceHandle>();
  auto* variable = dynamic_cast<VariableResource*>(element.resource());
  if (!variable) {
    throw InvalidArgumentError(cat("The handle ", element.empty() ? "(empty)" : element.info().name,
                                   " does not refer to a variable."));
  }
  return *variable;
}

}  // namespace tandem
