#include "tandem/kernels/cpu/string/expression.h"

#include <cctype>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

// Whether `pattern` is one class of ASCII characters, as "[,.!?]", and nothing else.
bool is_ascii_class(std::string_view pattern) {
  if (pattern.size() < 3 || pattern.front() != '[' || pattern.back() != ']') return false;
  if (pattern[1] == '^' || pattern[1] == ']') return false;
  for (std::size_t i = 1; i + 1 < pattern.size(); ++i) {
    const auto byte = static_cast<unsigned char>(pattern[i]);
    if (byte >= 0x80 || byte == ']') return false;
    if (byte == '[' && pattern[i + 1] == ':') return false;
    if (byte != '\\') continue;
    ++i;  // an escaped letter or digit may stand for any characters
    if (i + 1 == pattern.size() || !std::ispunct(static_cast<unsigned char>(pattern[i]))) {
      return false;
    }
  }
  return true;
}

ByteClass bytes_of(const RE2& ascii_class) {
  ByteClass bytes{};
  for (int byte = 0; byte < 0x80; ++byte) {
    const char letter = static_cast<char>(byte);
    bytes[static_cast<std::size_t>(byte)] =
        RE2::FullMatch(re2::StringPiece(&letter, 1), ascii_class);
  }
  return bytes;
}

}  // namespace

const Expression& compiled(const std::string& pattern) {
  thread_local Expression last;
  if (!last.automaton || last.automaton->pattern() != pattern) {
    last = {};
    RE2::Options options;
    options.set_log_errors(false);
    auto made = std::make_unique<RE2>(pattern, options);
    if (!made->ok()) {
      throw InvalidArgumentError(cat("Invalid pattern: ", pattern, ", error: ", made->error()));
    }
    if (is_ascii_class(pattern)) last.bytes = bytes_of(*made);
    last.automaton = std::move(made);
  }
  return last;
}

}  // namespace tandem::cpu
