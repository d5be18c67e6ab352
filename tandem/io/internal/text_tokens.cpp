#include "tandem/io/internal/text_tokens.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "tandem/core/error.h"

namespace tandem::io::proto {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '+' || c == '-'; }

int digit_of(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

void append_utf8(std::uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
}

}  // namespace

void TextTokens::fail(const std::string& why) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  throw DataLossError(cat("line ", line, ", column ",
                          start == std::string_view::npos ? at_ + 1 : at_ - start, ": ", why));
}

void TextTokens::skip_space() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (std::string_view(" \t\r\n\v\f").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    } else {
      return;
    }
  }
}

bool TextTokens::take(std::string_view symbol) {
  skip_space();
  if (symbol.empty()) return at_ == text_.size();
  if (!text_.substr(at_).starts_with(symbol)) return false;
  at_ += symbol.size();
  return true;
}

void TextTokens::expect(std::string_view symbol) {
  if (!take(symbol)) fail(cat("'", symbol, "' is missing"));
}

std::string TextTokens::identifier() {
  skip_space();
  const std::size_t begin = at_;
  if (at_ == text_.size()) fail("the text is cut off");
  if (!is_letter(text_[at_])) fail("a field's name is missing");
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  return std::string(text_.substr(begin, at_ - begin));
}

// A number or a name, with its sign.
std::string_view TextTokens::word() {
  skip_space();
  std::size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (begin == at_) fail("a value is missing");
  if (at_ - begin == 1 && text_[begin] == '-') {  // a sign may stand apart
    skip_space();
    fail("a number is missing");
  }
  return text_.substr(begin, at_ - begin);
}

bool TextTokens::boolean() {
  const std::string_view w = word();
  if (w == "true" || w == "True" || w == "t" || w == "1") return true;
  if (w == "false" || w == "False" || w == "f" || w == "0") return false;
  fail(cat("'", w, "' is neither true nor false"));
}

double TextTokens::real() {
  std::string_view w = word();
  const std::string_view whole = w;
  const bool negative = w.starts_with('-');
  if (negative) w.remove_prefix(1);
  double value = 0;
  std::string lower(w);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "inf" || lower == "infinity" || lower == "inff") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan" || lower == "nanf") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (lower.size() > 1 && lower.ends_with('f') && !lower.starts_with("0x")) lower.pop_back();
    const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
    if (end != lower.data() + lower.size() || error == std::errc::invalid_argument)
      fail(cat("'", whole, "' is no number"));
    // Out of range: to infinity or zero, as the exponent says.
    if (error == std::errc::result_out_of_range) {
      value = lower.find("e-") != std::string::npos ? 0.0 : std::numeric_limits<double>::infinity();
    }
  }
  return negative ? -value : value;
}

std::uint64_t TextTokens::digits(std::string_view word, std::uint64_t most) {
  int base = 10;
  std::string_view rest = word;
  if (rest.starts_with("0x") || rest.starts_with("0X")) {
    base = 16;
    rest.remove_prefix(2);
  } else if (rest.size() > 1 && rest.starts_with('0')) {
    base = 8;
    rest.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
  if (error == std::errc::invalid_argument || end != rest.data() + rest.size())
    fail(cat("'", word, "' is no integer"));
  if (error != std::errc() || value > most) fail(cat("'", word, "' is too large"));
  return value;
}

std::int64_t TextTokens::integer(std::int64_t least, std::int64_t most) {
  std::string_view w = word();
  if (!w.starts_with('-'))
    return static_cast<std::int64_t>(digits(w, static_cast<std::uint64_t>(most)));
  w.remove_prefix(1);
  const std::uint64_t value = digits(w, static_cast<std::uint64_t>(-(least + 1)) + 1);
  return static_cast<std::int64_t>(~value + 1);
}

std::uint64_t TextTokens::unsigned_integer(std::uint64_t most) { return digits(word(), most); }

std::int32_t TextTokens::enum_number(EnumNames names) {
  const std::string_view w = word();
  for (const EnumValue& value : names) {
    if (w == value.name) return value.number;
  }
  if (!is_digit(w.front())) fail(cat("there is no value '", w, "'"));
  return static_cast<std::int32_t>(digits(w, INT32_MAX));
}

std::string TextTokens::string() {
  skip_space();
  std::string out;
  bool any = false;
  while (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
    read_quoted(out);
    any = true;
    skip_space();
  }
  if (!any) fail("a string is missing");
  return out;
}

void TextTokens::read_quoted(std::string& out) {
  const char quote = text_[at_++];
  while (true) {
    if (at_ == text_.size() || text_[at_] == '\n') fail("a string does not end");
    const char c = text_[at_++];
    if (c == quote) return;
    if (c == '\\') {
      read_escape(out);
    } else {
      out += c;
    }
  }
}

void TextTokens::read_escape(std::string& out) {
  if (at_ == text_.size()) fail("a string does not end");
  const char c = text_[at_++];
  constexpr std::string_view kNames = "abfnrtv\\'\"?", kValues = "\a\b\f\n\r\t\v\\'\"?";
  if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
    out += kValues[i];
    return;
  }
  const auto number = [&](int base, int most) {
    std::uint32_t value = 0;
    int count = 0;
    while (count < most && at_ < text_.size() && digit_of(text_[at_]) < base) {
      value = value * static_cast<std::uint32_t>(base) +
              static_cast<std::uint32_t>(digit_of(text_[at_++]));
      ++count;
    }
    if (count == 0) fail("an escape in a string has no digits");
    return value;
  };
  if (c >= '0' && c <= '7') {
    --at_;
    out += static_cast<char>(number(8, 3));
  } else if (c == 'x' || c == 'X') {
    out += static_cast<char>(number(16, 2));
  } else if (c == 'u' || c == 'U') {
    const std::uint32_t code = number(16, c == 'u' ? 4 : 8);
    if (code > 0x10ffff) fail("an escape in a string names no character");
    append_utf8(code, out);
  } else {
    fail(cat("'\\", c, "' is no escape"));
  }
}

std::string quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      text += '\\';
      text += static_cast<char>('0' + (byte >> 6));
      text += static_cast<char>('0' + (byte >> 3 & 7));
      text += static_cast<char>('0' + (byte & 7));
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string enum_text(std::int32_t number, EnumNames names) {
  for (const EnumValue& value : names) {
    if (value.number == number) return value.name;
  }
  return cat(number);
}

}  // namespace tandem::io::proto
