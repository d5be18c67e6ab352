// Regular expressions, in RE2's syntax.

#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <re2/re2.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

// By byte, whether it is in the class of characters.
using ByteClass = std::array<bool, 256>;

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

struct Expression {
  std::unique_ptr<RE2> automaton;
  std::optional<ByteClass> bytes;  ///< if it is no more than that
};

ByteClass bytes_of(const RE2& ascii_class) {
  ByteClass bytes{};
  for (int byte = 0; byte < 0x80; ++byte) {
    const char letter = static_cast<char>(byte);
    bytes[static_cast<std::size_t>(byte)] =
        RE2::FullMatch(re2::StringPiece(&letter, 1), ascii_class);
  }
  return bytes;
}

// The thread's last expression is kept: an op mostly comes with the same one again.
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

std::string without(const std::string& s, const ByteClass& bytes) {
  std::string kept(s.size(), '\0');
  std::size_t n = 0;
  for (const char letter : s) {
    kept[n] = letter;
    n += bytes[static_cast<unsigned char>(letter)] ? 0 : 1;
  }
  kept.resize(n);
  return kept;
}

const std::string& text_input(const KernelContext& c, int i, const char* name) {
  const Array& text = c.input(i);
  if (text.rank() != 0) {
    throw InvalidArgumentError(cat(name, " must be scalar, but received ", text.shape()));
  }
  return *text.data<std::string>();
}

void replace_all(KernelContext& c, const std::string& pattern, const std::string& rewrite) {
  const bool global = c.attr<bool>("replace_global");
  const auto& [automaton, bytes] = compiled(pattern);
  if (global && bytes && rewrite.empty()) {
    return map_strings<std::string>(
        c, 100, [&bytes = *bytes](const std::string& s) { return without(s, bytes); });
  }
  map_strings<std::string>(c, 500,
                           [&expression = *automaton, &rewrite, global](const std::string& s) {
                             std::string text = s;
                             // A rewrite that names groups which the expression lacks leaves the
                             // text as it is.
                             if (global) {
                               RE2::GlobalReplace(&text, expression, rewrite);
                             } else {
                               RE2::Replace(&text, expression, rewrite);
                             }
                             return text;
                           });
}

void match_all(KernelContext& c, const std::string& pattern) {
  const RE2& expression = *compiled(pattern).automaton;
  map_strings<bool>(c, 200, [&](const std::string& s) { return RE2::FullMatch(s, expression); });
}

void replace(KernelContext& c) {
  const std::string& pattern = text_input(c, 1, "Pattern");
  replace_all(c, pattern, text_input(c, 2, "Rewrite"));
}
void static_replace(KernelContext& c) {
  replace_all(c, c.attr<std::string>("pattern"), c.attr<std::string>("rewrite"));
}
void full_match(KernelContext& c) { match_all(c, text_input(c, 1, "Pattern")); }
void static_full_match(KernelContext& c) { match_all(c, c.attr<std::string>("pattern")); }

const KernelRegistration kReplace{{.op = "RegexReplace", .run = replace}};
const KernelRegistration kStaticReplace{{.op = "StaticRegexReplace", .run = static_replace}};
const KernelRegistration kFullMatch{{.op = "RegexFullMatch", .run = full_match}};
const KernelRegistration kStaticFullMatch{{.op = "StaticRegexFullMatch", .run = static_full_match}};

}  // namespace
}  // namespace tandem::cpu
