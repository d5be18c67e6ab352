#include "tandem/core/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tandem {
namespace {

// A malformed variable is refused where a Runtime starts; until then it says nothing.
LogLevel of_environment() {
  const char* const text = std::getenv("TANDEM_LOG_LEVEL");
  const bool digit = text && text[0] >= '0' && text[0] <= '3' && text[1] == '\0';
  return digit ? static_cast<LogLevel>(text[0] - '0') : LogLevel::kInfo;
}

std::atomic<LogLevel>& level_now() {
  static std::atomic<LogLevel> level{of_environment()};
  return level;
}

}  // namespace

LogLevel log_level() { return level_now().load(std::memory_order_relaxed); }
void set_log_level(LogLevel level) { level_now().store(level, std::memory_order_relaxed); }

void log(LogLevel level, std::string_view line) {
  if (level < log_level() || level == LogLevel::kNone) return;
  std::string text(line);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tandem
