#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tandem::cpu {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// One character off the front of a text, or what stands there instead of one.
struct Taken {
  char32_t character = kReplacementCharacter;
  std::size_t bytes = 0;
  bool valid = true;
};

/// An encoding by the names that ICU takes, whatever their case, with or without '-' and '_':
/// UTF-8, UTF-16, UTF-32 (these by their byte order mark, else big-endian), -BE, -LE, US-ASCII,
/// ISO-8859-1. Of what is malformed the longest beginning of a character counts as one, U+FFFD.
class TextDecoder {
 public:
  /// Throws InvalidArgumentError for another name.
  explicit TextDecoder(std::string_view encoding);
  void for_each(std::string_view text, const std::function<void(const Taken&)>& visit) const;

 private:
  enum class Kind { kUtf8, kUtf16, kUtf32, kAscii, kLatin1 };
  Kind kind_ = Kind::kUtf8;
  bool little_ = false, marked_ = false;
};

/// Appends to text in UTF-8, UTF-16-BE or UTF-32-BE, which the caller has checked.
class TextEncoder {
 public:
  explicit TextEncoder(std::string_view encoding);
  void append(char32_t character, std::string& text) const;

 private:
  int unit_ = 1;  ///< bytes
};

}  // namespace tandem::cpu
