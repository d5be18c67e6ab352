#pragma once

#include <string>

namespace tandem {

class Runtime;

/// Warns of what soft placement decided: each line once for a runtime, however often it decides so.
void tell_soft_placement(Runtime& runtime, const std::string& line);

}  // namespace tandem
