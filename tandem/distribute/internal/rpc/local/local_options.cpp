#include "tandem/distribute/internal/rpc/local/local_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/core/machine.h"

namespace tandem::distribute {

LocalOptions LocalOptions::from_environment() {
  LocalOptions options;
  if (const char* value = std::getenv("TANDEM_LOCAL_TRANSPORT"); value && *value != '\0') {
    const std::string_view text = value;
    if (text != "0" && text != "1")
      throw InvalidArgumentError(cat("TANDEM_LOCAL_TRANSPORT is 0 or 1, not \"", text, "\"."));
    options.enabled = text == "1";
  }
  const std::uint64_t memory = machine_limits().memory;
  if (memory > 0) options.memory_limit = std::min(options.memory_limit, std::size_t{memory} / 8);
  if (const char* value = std::getenv("TANDEM_LOCAL_TRANSPORT_MEMORY_MB");
      value && *value != '\0') {
    const std::string_view text = value;
    std::uint32_t megabytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw InvalidArgumentError(
          cat("TANDEM_LOCAL_TRANSPORT_MEMORY_MB is a number of MiB, not \"", text, "\"."));
    }
    options.memory_limit = std::size_t{megabytes} << 20;
  }
  return options;
}

}  // namespace tandem::distribute
