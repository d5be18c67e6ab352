#include "tandem/device/lost_device.h"

#include "tandem/core/error.h"

namespace tandem {

std::string lost_text(std::string_view device, std::string_view why) {
  return cat("Device ", device, " is lost", why.empty() ? "" : ": ", why,
             ". What its memory held is gone; other devices can still be used.");
}

void check_not_lost(const Device& device) {
  if (const std::string why = device.lost(); !why.empty())
    throw UnavailableError(lost_text(device.name(), why));
}

}  // namespace tandem
