#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/resource_handle.h"

namespace tandem {

/// A device's named resources. Resources made under an anonymous name are kept alive by their
/// handles alone. Thread-safe.
class TANDEM_EXPORT ResourceManager {
 public:
  /// The resource of that name, made by `make` if there is none yet.
  Ref<Resource> lookup_or_create(std::string_view container, std::string_view name,
                                 const std::function<Ref<Resource>()>& make);
  /// Null when absent.
  Ref<Resource> lookup(std::string_view container, std::string_view name) const;
  void remove(std::string_view container, std::string_view name);
  void clear();

 private:
  using Key = std::pair<std::string, std::string>;
  mutable std::mutex mutex_;
  std::map<Key, Ref<Resource>> resources_;
};

/// The state of a resource variable. Readers share the value's buffer; writers replace it, or
/// change it in place when nothing else holds it.
class TANDEM_EXPORT VariableResource final : public Resource {
 public:
  VariableResource(std::string name, DType dtype, PartialShape shape)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }
  /// Guards the value; held while a kernel updates it.
  std::mutex& mutex() { return mutex_; }
  /// Call with `mutex` held. Throws FailedPreconditionError while the variable is uninitialised.
  Array& value();
  bool initialized() const { return value_.valid(); }
  /// Call with `mutex` held: the value in memory that nothing else sees, copied first if necessary.
  Array& writable_value();
  /// Checks dtype and shape, then replaces the value. Call with `mutex` held.
  void assign(Array value, bool validate_shape = true);
  /// Forgets the value. Call with `mutex` held.
  void clear() { value_ = Array(); }
  std::string debug_string() const override;

 private:
  void name_holder();

  std::string name_;
  DType dtype_;
  PartialShape shape_;
  std::mutex mutex_;
  Array value_;
};

/// The variable that a resource array (a scalar handle) refers to; throws InvalidArgumentError if
/// it is no variable.
TANDEM_EXPORT VariableResource& variable_of(const Array& handle);

}  // namespace tandem
