#include "tandem/graph/resource_manager.h"

#include <iterator>
#include <utility>

#include "tandem/core/error.h"

namespace tandem {

ResourceManager::~ResourceManager() { retire(resources_); }

Ref<Resource> ResourceManager::lookup_or_create(std::string_view container, std::string_view name,
                                                const std::function<Ref<Resource>()>& make) {
  const Key key(container, name);
  const auto check_open = [&] {
    if (!closed_) return;
    throw FailedPreconditionError(
        cat("Resource ", container, "/", name,
            " is asked for in a session that has ended. Make another one."));
  };
  {
    std::lock_guard lock(mutex_);
    check_open();
    if (const auto it = resources_.find(key); it != resources_.end()) return it->second;
  }
  Ref<Resource> made = make();
  std::lock_guard lock(mutex_);
  check_open();
  return resources_.try_emplace(key, std::move(made)).first->second;
}

Ref<Resource> ResourceManager::lookup(std::string_view container, std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto it = resources_.find(Key(container, name));
  return it == resources_.end() ? Ref<Resource>() : it->second;
}

void ResourceManager::remove(std::string_view container, std::string_view name) {
  Ref<Resource> removed;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  const auto it = resources_.find(Key(container, name));
  if (it == resources_.end()) return;
  removed = std::move(it->second);
  resources_.erase(it);
}

void ResourceManager::retire(const Resources& resources) {
  for (const auto& entry : resources) entry.second->retire();
}

void ResourceManager::clear(std::string_view container) {
  Resources gone;
  {
    std::lock_guard lock(mutex_);
    for (auto it = resources_.begin(); it != resources_.end();) {
      const auto next = std::next(it);
      if (it->first.first == container) gone.insert(resources_.extract(it));
      it = next;
    }
  }
  retire(gone);
}

void ResourceManager::clear() {
  Resources gone;
  {
    std::lock_guard lock(mutex_);
    gone.swap(resources_);
  }
  retire(gone);
}

void ResourceManager::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  clear();
}

std::vector<ResourceManager::Entry> ResourceManager::list() const {
  Resources resources;
  {
    std::lock_guard lock(mutex_);
    resources = resources_;
  }
  std::vector<Entry> entries;
  for (const auto& [key, found] : resources)
    entries.push_back({key.first, key.second, found->debug_string()});
  return entries;
}

void ResourceManager::throw_other_type(const Resource& found, std::string_view container,
                                       std::string_view name, const char* type) {
  throw InvalidArgumentError(cat("Resource ", container, "/", name, " is no ", type, ": it is ",
                                 found.debug_string(), ". Ask for it as what it is, or give the ",
                                 type, " another name or container."));
}

void ResourceManager::throw_absent(std::string_view container, std::string_view name,
                                   const char* type) {
  throw NotFoundError(cat("There is no ", type, " named ", container, "/", name,
                          ". It is made by the op that gives its handle: run that first."));
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
  element.check_alive();
  auto* variable = dynamic_cast<VariableResource*>(element.resource());
  if (!variable) {
    throw InvalidArgumentError(cat("The handle ", element.empty() ? "(empty)" : element.info().name,
                                   " does not refer to a variable."));
  }
  return *variable;
}

}  // namespace tandem
