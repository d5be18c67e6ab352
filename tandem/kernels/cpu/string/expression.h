#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include <re2/re2.h>

namespace tandem::cpu {

/// By byte, whether it is in a class of characters.
using ByteClass = std::array<bool, 256>;

/// A regular expression in RE2's syntax.
struct Expression {
  std::unique_ptr<RE2> automaton;
  std::optional<ByteClass> bytes;  ///< if it is one class of ASCII characters, as "[,.!?]"
};

/// The thread's last expression is kept: an op mostly comes with the same one again. Throws
/// InvalidArgumentError for a text that is no expression.
const Expression& compiled(const std::string& pattern);

}  // namespace tandem::cpu
