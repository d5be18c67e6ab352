#include "tandem/kernels/cpu/string/unicode_text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/string/unicode_case.h"

namespace tandem::cpu {
namespace {

bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

// Unicode's table of well-formed UTF-8: what may follow a first byte at once.
Taken take_utf8_strictly(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first < 0xC2   ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0) return {kReplacementCharacter, 1, false};
  char32_t character = first & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    std::uint8_t low = 0x80, high = 0xBF;
    if (i == 1) {
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (i >= s.size() || byte(i) < low || byte(i) > high) {
      return {kReplacementCharacter, i, false};
    }
    character = character << 6 | (byte(i) & 0x3F);
  }
  return {character, length, true};
}

char32_t unit_at(std::string_view s, std::size_t at, std::size_t bytes, bool little) {
  char32_t unit = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    unit = unit << 8 | static_cast<std::uint8_t>(s[at + (little ? bytes - 1 - i : i)]);
  }
  return unit;
}

Taken take_utf16(std::string_view s, bool little) {
  if (s.size() < 2) return {kReplacementCharacter, s.size(), false};
  const char32_t high = unit_at(s, 0, 2, little);
  if (!is_surrogate(high)) return {high, 2, true};
  if (high >= 0xDC00) return {kReplacementCharacter, 2, false};
  if (s.size() < 4) return {kReplacementCharacter, s.size(), false};
  const char32_t low = unit_at(s, 2, 2, little);
  if (low < 0xDC00 || low > 0xDFFF) return {kReplacementCharacter, 2, false};
  return {0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 4, true};
}

Taken take_utf32(std::string_view s, bool little) {
  if (s.size() < 4) return {kReplacementCharacter, s.size(), false};
  const char32_t character = unit_at(s, 0, 4, little);
  if (character > 0x10FFFF || is_surrogate(character)) return {kReplacementCharacter, 4, false};
  return {character, 4, true};
}

}  // namespace

TextDecoder::TextDecoder(std::string_view encoding) {
  std::string name;
  for (const char letter : encoding) {
    if (letter == '-' || letter == '_' || letter == ' ') continue;
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  if (name == "utf8") return;
  if (name == "usascii" || name == "ascii") {
    kind_ = Kind::kAscii;
  } else if (name == "iso88591" || name == "latin1") {
    kind_ = Kind::kLatin1;
  } else if (name.rfind("utf16", 0) == 0 || name.rfind("utf32", 0) == 0) {
    kind_ = name[3] == '1' ? Kind::kUtf16 : Kind::kUtf32;
    const std::string order = name.substr(5);
    little_ = order == "le";
    marked_ = order.empty();
    if (!order.empty() && order != "le" && order != "be") kind_ = Kind::kUtf8;
  }
  if (kind_ == Kind::kUtf8) {
    throw InvalidArgumentError(cat("Could not create converter for input encoding: ", encoding,
                                   ". There are UTF-8, UTF-16, UTF-32 (also -BE, -LE), US-ASCII "
                                   "and ISO-8859-1."));
  }
}

void TextDecoder::for_each(std::string_view text,
                           const std::function<void(const Taken&)>& visit) const {
  bool little = little_;
  std::size_t mark = 0;  // bytes of a byte order mark, which count to the first character
  if (marked_) {
    const std::size_t unit = kind_ == Kind::kUtf16 ? 2 : 4;
    for (const bool order : {false, true}) {
      if (text.size() < unit || unit_at(text, 0, unit, order) != 0xFEFF) continue;
      little = order;
      mark = unit;
    }
    text.remove_prefix(mark);
  }
  while (!text.empty()) {
    Taken taken;
    switch (kind_) {
      case Kind::kUtf8: taken = take_utf8_strictly(text); break;
      case Kind::kUtf16: taken = take_utf16(text, little); break;
      case Kind::kUtf32: taken = take_utf32(text, little); break;
      case Kind::kAscii:
      case Kind::kLatin1: {
        const auto byte = static_cast<std::uint8_t>(text.front());
        const bool valid = byte < 0x80 || kind_ == Kind::kLatin1;
        taken = {valid ? byte : kReplacementCharacter, 1, valid};
      }
    }
    text.remove_prefix(taken.bytes);
    taken.bytes += mark;
    mark = 0;
    visit(taken);
  }
}

TextEncoder::TextEncoder(std::string_view encoding)
    : unit_(encoding == "UTF-8"       ? 1
            : encoding == "UTF-16-BE" ? 2
                                      : 4) {}

void TextEncoder::append(char32_t character, std::string& text) const {
  if (unit_ == 1) return append_utf8(character, text);
  const auto put = [&](char32_t unit) {
    for (int shift = 8 * (unit_ - 1); shift >= 0; shift -= 8) {
      text += static_cast<char>(unit >> shift & 0xFF);
    }
  };
  if (unit_ == 4 || character < 0x10000) return put(character);
  put(0xD800 + ((character - 0x10000) >> 10));
  put(0xDC00 + ((character - 0x10000) & 0x3FF));
}

}  // namespace tandem::cpu
