#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::data {

/// "1.23 ms", "45.6 µs", "0 s".
std::string time_text(double seconds);
/// "3.2 %".
std::string percent_text(double share);
/// "64 B", "1.5 KiB".
std::string bytes_text(double bytes);
/// "1,234" per second and the like: three digits of small numbers, whole large ones.
std::string number_text(double number);
/// Characters that a line shows, in UTF-8.
std::size_t width(std::string_view text);

}  // namespace tandem::data
