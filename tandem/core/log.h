#pragma once

#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

enum class LogLevel : int { kInfo = 0, kWarning = 1, kError = 2, kNone = 3 };

/// Lines below this level are not written, in the whole process: TANDEM_LOG_LEVEL, or what a
/// Runtime's options said last. All are written if nothing was said. Thread-safe.
TANDEM_EXPORT LogLevel log_level();
TANDEM_EXPORT void set_log_level(LogLevel level);

/// Writes one line to stderr, if the level is to be written.
TANDEM_EXPORT void log(LogLevel level, std::string_view line);

}  // namespace tandem
