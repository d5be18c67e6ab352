#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// "GPU:0" of any way to write a physical device: "GPU:0", "/gpu:0", "/device:GPU:0",
/// "/physical_device:GPU:0". Throws InvalidArgumentError for anything else.
std::string physical_name(std::string_view name);

}  // namespace tandem
