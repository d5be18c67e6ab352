#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/runtime/device_config.h"

namespace tandem {

/// The physical devices that there are, whether used or not, and the backends that provide them.
/// Immutable; thread-safe.
///
/// Devices of a type are numbered over all backends, in their order: the host, CUDA, plugins, the
/// program's own, emulated ones. An emulated type stands in for real devices of that type, which
/// are then left out, so that a test finds the same devices on every machine.
class TANDEM_EXPORT DeviceInventory {
 public:
  struct Entry {
    PhysicalDevice device;  ///< as users name it
    PhysicalDevice native;  ///< as its backend does
    std::shared_ptr<Backend> backend;
    DeviceProperties properties() const { return backend->properties(native); }
    std::string short_name() const;  ///< "GPU:0"
  };

  /// Makes the inventory of a configuration completed by the environment. Throws
  /// InvalidArgumentError for a malformed specification, the plugin's error for one that cannot be
  /// loaded.
  explicit DeviceInventory(const DeviceConfig& config);

  /// CPUs first.
  const std::vector<Entry>& devices() const { return devices_; }
  const std::vector<std::shared_ptr<Backend>>& backends() const { return backends_; }
  /// By "GPU:0", "/gpu:0" or "/physical_device:GPU:0"; null if there is none of that name.
  const Entry* find(std::string_view name) const;
  /// Lines on what is not there and why: "cuda: no CUDA driver found".
  const std::vector<std::string>& notes() const { return notes_; }

  /// Throws, as docs/devices.md describes, if the configuration is impossible with these devices.
  void check(const DeviceConfig& config) const;
  /// The part of `check` that concerns one device's memory and logical devices.
  void check_logical(const DeviceConfig& config, const Entry& entry) const;
  /// True if the device is to be used.
  static bool visible(const DeviceConfig& config, const Entry& entry);
  /// Those, in the order in which logical devices are made of them: CPUs, then others by their
  /// numbers, or as the environment lists them. A program's list is a set, as TensorFlow's.
  std::vector<const Entry*> used(const DeviceConfig& config) const;

  /// The logical devices of one physical device: what each is cut like.
  static std::vector<LogicalDeviceOptions> cut(const DeviceConfig& config, const Entry& entry);

 private:
  void add(const std::shared_ptr<Backend>& backend, const std::vector<std::string>& left_out);
  void check_known(const DeviceConfig& config, const std::string& setting,
                   const std::string& name) const;
  void check_names(const DeviceConfig& config) const;
  void check_growth(const DeviceConfig& config) const;
  void report_hidden(const DeviceConfig& config) const;

  std::vector<Entry> devices_;
  std::vector<std::shared_ptr<Backend>> backends_;
  std::vector<std::string> notes_;
};

}  // namespace tandem
