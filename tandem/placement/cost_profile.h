#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

struct DeviceModel;  // tandem/placement/device_set.h

/// Measured run times, by (op, attributes, input dtypes and shapes, kind of device), gathered in
/// running (`td::profiler`) and kept in a file. Thread-safe.
class TANDEM_EXPORT CostProfile {
 public:
  CostProfile() = default;
  CostProfile(CostProfile&& other) noexcept;

  /// What the times of a node are filed under; nodes that do the same work share it.
  static std::string key(const Node& node);
  /// Devices of one kind are taken to be equally fast: "GPU".
  static std::string kind(const DeviceModel& device);

  void add(std::string_view key, std::string_view device_kind, double seconds);
  /// The mean of what was added, without the first (which pays for caches), if there is a second.
  std::optional<double> seconds(std::string_view key, std::string_view device_kind) const;
  std::size_t size() const;

  /// JSON, sorted, so that equal profiles give equal files. Throws the file system's error;
  /// load throws InvalidArgumentError naming file and field where it is malformed.
  void save(const std::string& path) const;
  static CostProfile load(const std::string& path);

 private:
  struct Times {
    double first = 0;
    double sum = 0;  ///< of all but the first
    std::int64_t count = 0;
  };
  mutable std::mutex mutex_;
  using ByDevice = std::map<std::string, Times, std::less<>>;
  std::map<std::string, ByDevice, std::less<>> times_;
};

}  // namespace tandem
