#include "tandem/runtime/config/configured.h"

#include "tandem/placement/placement.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::config {

Runtime* running() {
  if (Runtime* const scoped = thread_context().runtime.get()) return scoped;
  return Runtime::default_exists() ? &Runtime::current() : nullptr;
}

Devices devices_now() {
  const Runtime* const runtime = running();
  if (!runtime) return default_options().devices();
  // The inventory lives as long as the runtime, which the caller keeps.
  return {runtime->device_config(), {std::shared_ptr<const void>(), &runtime->inventory()}};
}

PlacementPolicy policy_of(const DeviceConfig& config) {
  const bool measured = config.placement_profile && !config.placement_profile->empty();
  return config.placement.value_or(measured ? PlacementPolicy::kCost : PlacementPolicy::kGreedy);
}

}  // namespace tandem::config
