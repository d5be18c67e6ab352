// Regular expressions, in RE2's syntax.

#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/string/expression.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

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
