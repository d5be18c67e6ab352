#include "tandem/placement/unsatisfiable_request.h"

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"

namespace tandem::placement {

std::string unsatisfiable_request(const Node& node, const std::string& available, bool any_gpu) {
  const bool wants_gpu = DeviceSpec::parse(node.requested_device()).type == "GPU";
  return cat("{{node ", node.name(), "}} was explicitly assigned to ", node.requested_device(),
             " but available devices are [ ", available,
             " ]. Make sure the device specification refers to a valid device.",
             wants_gpu && !any_gpu
                 ? " The requested device appears to be a GPU, but CUDA is not enabled."
                 : "");
}

}  // namespace tandem::placement
