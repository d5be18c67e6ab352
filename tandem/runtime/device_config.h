#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

class Backend;
enum class PlacementPolicy : std::uint8_t;  // tandem/placement/placement.h

/// One of the logical devices that a physical device is cut into (tf.config's).
struct LogicalDeviceConfiguration {
  /// MiB; required for accelerators, refused for CPUs.
  std::optional<std::int64_t> memory_limit = std::nullopt;
  std::optional<int> experimental_priority = std::nullopt;        ///< no backend has any yet
  std::optional<int> experimental_device_ordinal = std::nullopt;  ///< likewise
  bool operator==(const LogicalDeviceConfiguration&) const = default;
};

/// Which devices a Runtime makes and how, a plain value. What is left unsaid comes from the
/// environment, else it is the default:
///
///     td::Runtime runtime({.devices = {.emulate = {"GPU:2,memory=1GiB"},
///                                      .logical = {{"GPU:0", {{.memory_limit = 256},
///                                                             {.memory_limit = 512}}}}}});
///
/// td::config sets the same for the default runtime. Physical devices are named "GPU:0". Whatever
/// is contradictory or impossible here throws where the Runtime is made.
struct TANDEM_EXPORT DeviceConfig {
  /// Accelerators to emulate, "GPU:2,memory=1GiB" (docs/devices.md); an empty text for none. They
  /// stand in for real ones of the same type.
  std::vector<std::string> emulate = {};
  std::vector<std::string> plugins = {};                ///< shared libraries that add devices
  std::vector<std::shared_ptr<Backend>> backends = {};  ///< of the program's own, after all others

  /// Physical devices that are used; unsaid: all. The environment's list is an order too.
  /// A list without a CPU throws NotFoundError, as in TensorFlow; the environment's keeps the CPU.
  std::optional<std::vector<std::string>> visible = std::nullopt;
  /// By physical device: the logical devices cut from it, at most kMaxLogicalDevices.
  std::map<std::string, std::vector<LogicalDeviceConfiguration>> logical = {};
  /// By physical device: MiB of its one logical device. "" is all accelerators without an entry.
  std::map<std::string, std::int64_t> memory_limit = {};
  /// By physical device, "" for the other accelerators: take memory as it is needed instead of all
  /// at first use.
  std::map<std::string, bool> memory_growth = {};

  std::optional<bool> soft_placement = std::nullopt;        ///< true unless said
  std::optional<bool> log_placement = std::nullopt;         ///< false unless said
  std::optional<bool> synchronous = std::nullopt;           ///< eager calls wait; false unless said
  std::optional<PlacementPolicy> placement = std::nullopt;  ///< greedy unless said
  /// File of measured costs for the cost policy, which it implies unless another is said.
  std::optional<std::string> placement_profile = std::nullopt;
  /// 0: everything is logged; 1: warnings and errors; 2: errors; 3: nothing. Of the whole process.
  std::optional<int> log_level = std::nullopt;

  /// Who said it, by setting ("visible", "memory_limit GPU:0"): "environment TANDEM_…". What has a
  /// value and no entry was said by the program.
  std::map<std::string, std::string> from = {};

  static constexpr int kMaxLogicalDevices = 1024;
  [[deprecated("use kMaxLogicalDevices")]] static constexpr int kMostLogicalDevices =
      kMaxLogicalDevices;

  /// "default", "environment TANDEM_VISIBLE_DEVICES" or "program".
  std::string origin(std::string_view setting) const;
  bool operator==(const DeviceConfig&) const = default;

  /// `given` completed by the environment. Throws InvalidArgumentError that names a malformed
  /// variable.
  static DeviceConfig with_environment(DeviceConfig given);
};

}  // namespace tandem
