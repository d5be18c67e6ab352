#pragma once

#include <string>

namespace tandem {

class Runtime;

/// Warns of what soft placement decided: once for a runtime and `about`, however often it decides
/// so.
void tell_soft_placement(Runtime& runtime, const std::string& line, const std::string& about);
/// Each line once.
inline void tell_soft_placement(Runtime& runtime, const std::string& line) {
  tell_soft_placement(runtime, line, line);
}

}  // namespace tandem
