#pragma once

#include <string>

namespace tandem {

class Runtime;

/// Warns of what soft placement decided: once for a runtime and `about`, however often it decides
/// so.
void report_soft_placement(Runtime& runtime, const std::string& line, const std::string& about);
/// Each line once.
inline void report_soft_placement(Runtime& runtime, const std::string& line) {
  report_soft_placement(runtime, line, line);
}

}  // namespace tandem
