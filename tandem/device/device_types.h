#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

/// Lets device names say "/NPU:0" and "npu:0" as they say "/gpu:0", in the whole process. Types of
/// devices that there are become known by themselves; "/device:NPU:0" is a name for any.
TANDEM_EXPORT void add_device_type(std::string_view type);

/// The type as its devices spell it, of any upper and lower case; nothing if it is not known.
TANDEM_EXPORT std::optional<std::string> known_device_type(std::string_view type);

}  // namespace tandem
