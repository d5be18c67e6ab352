#pragma once

#include <memory>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"
#include "tandem/placement/device_set.h"

namespace tandem {

class CostProfile;  // tandem/placement/cost_profile.h

/// What an op costs on a device: measured where the profile knows it, else estimated by a roofline:
/// the launch overhead, and the larger of operations / flops and bytes / memory bandwidth.
/// Immutable; thread-safe.
class TANDEM_EXPORT CostModel {
 public:
  explicit CostModel(const DeviceSet& devices,
                     std::shared_ptr<const CostProfile> profile = nullptr);

  const DeviceSet& devices() const { return devices_; }
  double seconds(const Node& node, int device) const;
  bool measured(const Node& node, int device) const;

  /// Devices that take the same time for any op share a class: there are few of them however many
  /// devices there are.
  int num_classes() const { return static_cast<int>(representatives_.size()); }
  int class_of(int device) const { return classes_[static_cast<std::size_t>(device)]; }
  /// The first device of a class.
  int representative(int device_class) const {
    return representatives_[static_cast<std::size_t>(device_class)];
  }
  /// What `seconds` gives, for each class.
  void seconds_by_class(const Node& node, std::vector<double>& out) const;

  /// Float operations of one execution; unknown dimensions count as 1.
  static double flops(const Node& node);
  /// Bytes of inputs and outputs; unknown dimensions count as 1. An output that shares an input's
  /// memory moves nothing.
  static double bytes(const Node& node);
  /// The size of an output.
  static double output_bytes(const Node& node, int output);
  /// True if all outputs are integers, booleans, objects or in the host's memory: a device that
  /// only takes time (DeviceModel::computes) computes them, and takes none for it.
  static bool makes_no_floats(const Node& node);
  /// False for what takes no time anywhere: constants, arguments, handles, and nodes that only
  /// order others.
  static bool has_work(const Node& node);

 private:
  double estimate(const Node& node, double flops, double bytes, const DeviceModel& device) const {
    const bool untimed = !device.computes && makes_no_floats(node);
    return untimed ? device.launch_overhead : roofline(flops, bytes, device);
  }
  double roofline(double flops, double bytes, const DeviceModel& device) const {
    const double compute = device.flops > 0 ? flops / device.flops : 0;
    const double memory = device.memory_bandwidth > 0 ? bytes / device.memory_bandwidth : 0;
    return device.launch_overhead + (compute > memory ? compute : memory);
  }

  DeviceSet devices_;
  std::shared_ptr<const CostProfile> profile_;
  std::vector<int> classes_;
  std::vector<int> representatives_;
};

}  // namespace tandem
