#include <exception>

#include "tandem/core/error.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/config/configured.h"

namespace tandem::config {

void set_soft_device_placement(bool enabled) {
  set_any_time([&](Runtime& runtime) { runtime.set_soft_placement(enabled); },
               [&](DeviceConfig& config) { config.soft_placement = enabled; });
}

bool get_soft_device_placement() {
  if (const Runtime* const runtime = running()) return runtime->soft_placement();
  return devices_now().config.soft_placement.value_or(true);
}

void set_synchronous_execution(bool enabled) {
  set_any_time([&](Runtime& runtime) { runtime.set_synchronous(enabled); },
               [&](DeviceConfig& config) { config.synchronous = enabled; });
}

bool get_synchronous_execution() {
  if (const Runtime* const runtime = running()) return runtime->synchronous();
  return devices_now().config.synchronous.value_or(false);
}

void set_placement_policy(StringView policy) {
  if (policy != "greedy" && policy != "cost") {
    throw InvalidArgumentError(
        cat("The placement policy must be \"greedy\" or \"cost\" but is \"", policy, "\"."));
  }
  const auto value = policy == "cost" ? PlacementPolicy::kCost : PlacementPolicy::kGreedy;
  set_any_time([&](Runtime& runtime) { runtime.set_placement_policy(value); },
               [&](DeviceConfig& config) { config.placement = value; });
}

std::string get_placement_policy() {
  const Runtime* const runtime = running();
  const PlacementPolicy policy =
      runtime ? runtime->placement_policy() : policy_of(devices_now().config);
  return policy == PlacementPolicy::kCost ? "cost" : "greedy";
}

void set_placement_profile(const String& path) {
  if (!path.empty()) {
    try {
      CostProfile::load(path);
    } catch (...) {
      std::rethrow_exception(with_line(
          std::current_exception(), "in td::config::set_placement_profile, which changed nothing"));
    }
  }
  set_any_time(
      [&](Runtime& runtime) {
        runtime.set_placement_profile(path);
        if (!path.empty()) runtime.set_placement_policy(PlacementPolicy::kCost);
      },
      [&](DeviceConfig& config) {
        config.placement_profile = path;
        if (!path.empty()) config.placement = PlacementPolicy::kCost;
      });
}

std::string get_placement_profile() {
  if (const Runtime* const runtime = running()) return runtime->placement_profile();
  return devices_now().config.placement_profile.value_or("");
}

namespace debugging {

void set_log_device_placement(bool enabled) {
  set_any_time([&](Runtime& runtime) { runtime.set_log_placement(enabled); },
               [&](DeviceConfig& config) { config.log_placement = enabled; });
}

bool get_log_device_placement() {
  if (const Runtime* const runtime = running()) return runtime->log_placement();
  return devices_now().config.log_placement.value_or(false);
}

}  // namespace debugging
}  // namespace tandem::config
