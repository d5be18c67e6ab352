#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

/// The job of a process that belongs to no cluster; its task is 0.
inline constexpr const char* kDefaultJob = "localhost";

/// A device name, complete or partial: "/job:worker/replica:0/task:1/device:GPU:0".
///
/// Parsing takes every form TensorFlow takes ("/gpu:0", "GPU:0", "/device:CPU:*", "cpu", "" for
/// nothing said).
struct TANDEM_EXPORT DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  ///< upper case, such as "GPU"
  std::optional<int> index;         ///< empty also for "*"

  /// Throws InvalidArgumentError with TensorFlow's text on a malformed name.
  static DeviceSpec parse(std::string_view name);

  /// "/job:localhost/replica:0/task:0": the one task of a process that belongs to no cluster.
  static DeviceSpec default_task();

  /// Job, replica and task alone.
  DeviceSpec task_spec() const;
  bool empty() const { return !job && !replica && !task && !type && !index; }
  /// Fields that this spec leaves open are taken from `outer`.
  DeviceSpec merged_into(const DeviceSpec& outer) const;
  /// True if every field said here equals `full`'s.
  bool matches(const DeviceSpec& full) const;
  /// Canonical form, /job /replica /task /device; "" when empty.
  std::string to_string() const;
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace tandem
