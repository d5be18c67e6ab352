#pragma once

#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// The error for users of a lost device's memory or streams.
TANDEM_EXPORT std::string lost_text(std::string_view device, std::string_view why);

/// Throws UnavailableError with that text if the device is lost.
TANDEM_EXPORT void check_not_lost(const Device& device);

}  // namespace tandem
