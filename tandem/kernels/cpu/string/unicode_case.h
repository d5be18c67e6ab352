#pragma once

#include <string>
#include <string_view>

namespace tandem::cpu {

/// UTF-8 with all letters small, or all capital, by Unicode's full mappings ("ß" becomes "SS").
/// Bytes that are no UTF-8 become U+FFFD.
std::string utf8_lower(std::string_view text);
std::string utf8_upper(std::string_view text);

/// Takes one character off the front of `text`; U+FFFD, and one byte less, if none begins there.
char32_t take_utf8(std::string_view& text);
void append_utf8(char32_t character, std::string& text);

}  // namespace tandem::cpu
