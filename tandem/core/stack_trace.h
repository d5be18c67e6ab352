#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Return addresses of a call stack, innermost first: cheap to take, made readable only when an
/// error needs it.
class TANDEM_EXPORT StackTrace {
 public:
  /// The caller's stack, at most `depth` frames.
  static StackTrace capture(int depth = 24);
  bool empty() const { return frames_.empty(); }
  /// The innermost `lines` frames outside Tandem itself, one a line, as "function (binary+offset)".
  std::string to_string(int lines = 4) const;

 private:
  std::vector<void*> frames_;
};

}  // namespace tandem
