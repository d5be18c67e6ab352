#pragma once

#include <optional>
#include <string_view>

namespace tandem::placement {

/// Numbers as people write them, with their unit as TANDEM_EMULATE wants it: "12GB/s" (powers of
/// 1000), "8GiB" (powers of 1024), "10us", "1.5T". Nothing where the text is malformed, negative or
/// not finite.
std::optional<double> parse_rate(std::string_view text);
std::optional<double> parse_bytes(std::string_view text);
std::optional<double> parse_seconds(std::string_view text);
std::optional<double> parse_flops(std::string_view text);

}  // namespace tandem::placement
