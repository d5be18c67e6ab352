#include "tandem/runtime/config/physical_names.h"

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"

namespace tandem {

std::string physical_name(std::string_view name) {
  constexpr std::string_view kPrefix = "/physical_device:";
  const DeviceSpec spec = name.starts_with(kPrefix)
                              ? DeviceSpec::parse(cat("/device:", name.substr(kPrefix.size())))
                              : DeviceSpec::parse(name);
  if (!spec.type || !spec.index || spec.job || spec.replica || spec.task) {
    throw InvalidArgumentError(
        cat("Failed parsing device name: '", name,
            "'. Note a valid device string should at least contain a device type and a device "
            "index, like \"GPU:0\"; a physical device has no job, replica or task."));
  }
  return cat(*spec.type, ":", *spec.index);
}

}  // namespace tandem
