#include "tandem/kernels/cpu/string/unicode_case.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Characters whose capitals are several: Unicode's SpecialCasing, its entries without conditions.
struct Capitals {
  char32_t small;
  char32_t capital[3];
};
constexpr Capitals kCapitals[] = {
    {0x00DF, {'S', 'S'}},
    {0x0149, {0x02BC, 'N'}},
    {0x01F0, {'J', 0x030C}},
    {0x0390, {0x0399, 0x0308, 0x0301}},
    {0x03B0, {0x03A5, 0x0308, 0x0301}},
    {0x0587, {0x0535, 0x0552}},
    {0x1E96, {'H', 0x0331}},
    {0x1E97, {'T', 0x0308}},
    {0x1E98, {'W', 0x030A}},
    {0x1E99, {'Y', 0x030A}},
    {0x1E9A, {'A', 0x02BE}},
    {0x1F50, {0x03A5, 0x0313}},
    {0x1F52, {0x03A5, 0x0313, 0x0300}},
    {0x1F54, {0x03A5, 0x0313, 0x0301}},
    {0x1F56, {0x03A5, 0x0313, 0x0342}},
    {0x1FB2, {0x1FBA, 0x0399}},
    {0x1FB3, {0x0391, 0x0399}},
    {0x1FB4, {0x0386, 0x0399}},
    {0x1FB6, {0x0391, 0x0342}},
    {0x1FB7, {0x0391, 0x0342, 0x0399}},
    {0x1FBC, {0x0391, 0x0399}},
    {0x1FC2, {0x1FCA, 0x0399}},
    {0x1FC3, {0x0397, 0x0399}},
    {0x1FC4, {0x0389, 0x0399}},
    {0x1FC6, {0x0397, 0x0342}},
    {0x1FC7, {0x0397, 0x0342, 0x0399}},
    {0x1FCC, {0x0397, 0x0399}},
    {0x1FD2, {0x0399, 0x0308, 0x0300}},
    {0x1FD3, {0x0399, 0x0308, 0x0301}},
    {0x1FD6, {0x0399, 0x0342}},
    {0x1FD7, {0x0399, 0x0308, 0x0342}},
    {0x1FE2, {0x03A5, 0x0308, 0x0300}},
    {0x1FE3, {0x03A5, 0x0308, 0x0301}},
    {0x1FE4, {0x03A1, 0x0313}},
    {0x1FE6, {0x03A5, 0x0342}},
    {0x1FE7, {0x03A5, 0x0308, 0x0342}},
    {0x1FF2, {0x1FFA, 0x0399}},
    {0x1FF3, {0x03A9, 0x0399}},
    {0x1FF4, {0x038F, 0x0399}},
    {0x1FF6, {0x03A9, 0x0342}},
    {0x1FF7, {0x03A9, 0x0342, 0x0399}},
    {0x1FFC, {0x03A9, 0x0399}},
    {0xFB00, {'F', 'F'}},
    {0xFB01, {'F', 'I'}},
    {0xFB02, {'F', 'L'}},
    {0xFB03, {'F', 'F', 'I'}},
    {0xFB04, {'F', 'F', 'L'}},
    {0xFB05, {'S', 'T'}},
    {0xFB06, {'S', 'T'}},
    {0xFB13, {0x0544, 0x0546}},
    {0xFB14, {0x0544, 0x0535}},
    {0xFB15, {0x0544, 0x053B}},
    {0xFB16, {0x054E, 0x0546}},
    {0xFB17, {0x0544, 0x053D}},
};

// Case mappings of single characters come from the C library's Unicode locale.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) {
    throw UnimplementedError("The C library has no locale C.UTF-8, which letters need.");
  }
  return locale;
}

char32_t single_upper(char32_t c) {
  return static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), unicode_locale()));
}
char32_t single_lower(char32_t c) {
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), unicode_locale()));
}

bool is_letter(char32_t c) { return iswalpha_l(static_cast<wint_t>(c), unicode_locale()) != 0; }

// Marks, apostrophes and the like, which the search for a word's end passes over.
bool is_ignorable(char32_t c) {
  return c == '\'' || c == '.' || c == ':' || c == 0x00AD || c == 0x00B7 || c == 0x2019 ||
         (c >= 0x0300 && c <= 0x036F) || (c >= 0x200B && c <= 0x200F);
}

// A capital sigma at the end of a word has a small form of its own.
bool ends_word(const std::vector<char32_t>& text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_letter(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_ignorable(text[after])) ++after;
  return after == text.size() || !is_letter(text[after]);
}

}  // namespace

char32_t take_utf8(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    text.remove_prefix(1);
    return first;
  }
  const std::size_t count = first >= 0xF0 && first < 0xF5   ? 4
                            : first >= 0xE0 && first < 0xF0 ? 3
                            : first >= 0xC2 && first < 0xE0 ? 2
                                                            : 0;
  if (count == 0) {
    text.remove_prefix(1);
    return kReplacement;
  }
  char32_t c = first & (0xFFu >> (count + 1));
  for (std::size_t i = 1; i < count; ++i) {
    // The first continuing byte also rules out long forms, surrogates and numbers that are too big.
    const unsigned char low = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (i >= text.size() || byte(i) < low || byte(i) > high) {
      text.remove_prefix(i);
      return kReplacement;
    }
    c = (c << 6) | (byte(i) & 0x3Fu);
  }
  text.remove_prefix(count);
  return c;
}

void append_utf8(char32_t c, std::string& text) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::string utf8_upper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const char32_t c = take_utf8(text);
    if (c >= 0x1F80 && c <= 0x1FAF) {  // Greek letters with iota below: the iota stands beside
      const char32_t base = c < 0x1F90 ? 0x1F08 : c < 0x1FA0 ? 0x1F28 : 0x1F68;
      append_utf8(base + (c & 7), result);
      append_utf8(0x0399, result);
      continue;
    }
    const auto* special =
        std::lower_bound(std::begin(kCapitals), std::end(kCapitals), c,
                         [](const Capitals& entry, char32_t small) { return entry.small < small; });
    if (special != std::end(kCapitals) && special->small == c) {
      for (const char32_t capital : special->capital) {
        if (capital != 0) append_utf8(capital, result);
      }
    } else {
      append_utf8(single_upper(c), result);
    }
  }
  return result;
}

std::string utf8_lower(std::string_view text) {
  std::vector<char32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) characters.push_back(take_utf8(text));
  std::string result;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i];
    if (c == 0x0130) {
      append_utf8('i', result);
      append_utf8(0x0307, result);
    } else if (c == 0x03A3) {
      append_utf8(ends_word(characters, i) ? 0x03C2 : 0x03C3, result);
    } else {
      append_utf8(single_lower(c), result);
    }
  }
  return result;
}

}  // namespace tandem::cpu
