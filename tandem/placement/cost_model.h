#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"
#include "tandem/placement/device_set.h"

namespace tandem {

class CostProfile;  // tandem/placement/cost_profile.h

/// What an op costs on a device: measured where the profile knows it, else estimated by a roofline
/// (the larger of operations / flops and bytes / memory bandwidth, and the launch overhead).
/// Immutable; thread-safe.
class TANDEM_EXPORT CostModel {
 public:
  explicit CostModel(const DeviceSet& devices,
                     std::shared_ptr<const CostProfile> profile = nullptr);

  const DeviceSet& devices() const { return devices_; }
  double seconds(const Node& node, int device) const;
  bool measured(const Node& node, int device) const;

  /// Float operations of one execution; unknown dimensions count as 1.
  static double flops(const Node& node);
  /// Bytes of inputs and outputs; unknown dimensions count as 1.
  static double bytes(const Node& node);
  static double output_bytes(const Node& node, int output);

 private:
  DeviceSet devices_;
  std::shared_ptr<const CostProfile> profile_;
};

}  // namespace tandem
