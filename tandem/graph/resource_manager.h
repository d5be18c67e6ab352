#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/device_spec.h"

namespace tandem {

/// Where resources are kept whose op names no container.
inline constexpr const char* kDefaultContainer = kDefaultJob;

/// The named resources of a device, in containers. A name stands for one resource, whatever its
/// kind: asking for another kind throws InvalidArgumentError. Resources made under an anonymous
/// name are kept alive by their handles alone. Thread-safe; no lock is held while a resource is
/// made or destroyed.
class TANDEM_EXPORT ResourceManager {
 public:
  ResourceManager() = default;
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  /// The resource of that name, made by `make` if there is none yet. Two threads may make it at a
  /// time; the first to be done wins, and the other one's is dropped. Throws
  /// FailedPreconditionError once the manager is closed.
  Ref<Resource> lookup_or_create(std::string_view container, std::string_view name,
                                 const std::function<Ref<Resource>()>& make);
  /// Null when absent.
  Ref<Resource> lookup(std::string_view container, std::string_view name) const;

  /// Look-up and creation for resources of kind R, which messages call `type`. `lookup` throws
  /// NotFoundError when absent.
  template <class R>
  Ref<R> lookup_or_create(std::string_view container, std::string_view name, const char* type,
                          const std::function<Ref<R>()>& make) {
    return of_type<R>(lookup_or_create(container, name, [&] { return Ref<Resource>(make()); }),
                      container, name, type);
  }
  template <class R>
  Ref<R> lookup(std::string_view container, std::string_view name, const char* type) const {
    Ref<Resource> found = lookup(container, name);
    if (!found) throw_absent(container, name, type);
    return of_type<R>(std::move(found), container, name, type);
  }

  void remove(std::string_view container, std::string_view name);
  /// Empties one container, whose resources' handles are then of no use (FailedPreconditionError).
  void clear(std::string_view container);
  /// Empties all.
  void clear();
  /// Empties all, for good.
  void close();

  struct Entry {
    std::string container;
    std::string name;
    std::string description;
  };
  /// What there is, by container and name.
  std::vector<Entry> list() const;

 private:
  using Key = std::pair<std::string, std::string>;
  using Resources = std::map<Key, Ref<Resource>>;

  template <class R>
  static Ref<R> of_type(Ref<Resource> found, std::string_view container, std::string_view name,
                        const char* type) {
    auto* typed = dynamic_cast<R*>(found.get());
    if (typed == nullptr) throw_other_type(*found, container, name, type);
    return Ref<R>(typed);
  }
  [[noreturn]] static void throw_other_type(const Resource& found, std::string_view container,
                                            std::string_view name, const char* type);
  [[noreturn]] static void throw_absent(std::string_view container, std::string_view name,
                                        const char* type);
  static void retire(const Resources& resources);

  mutable std::mutex mutex_;
  Resources resources_;  // guarded by mutex_, as what follows
  bool closed_ = false;
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
