#pragma once

#include <string>

#include "tandem/core/error.h"

namespace tandem::internal {

/// A text that users give as a C string. Throws InvalidArgumentError for null, of which std::string
/// would throw std::logic_error. `what`: "the name of an optimizer".
inline std::string name_argument(const char* text, const char* what) {
  if (!text) throw InvalidArgumentError(cat("null was given where ", what, " is expected."));
  return text;
}

}  // namespace tandem::internal
