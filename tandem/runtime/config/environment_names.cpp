#include "tandem/runtime/config/environment_names.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/graph/op_registry.h"

namespace tandem {
namespace {

const std::vector<std::string>& known_variables() {
  static const NeverDestroyed<std::vector<std::string>> names([] {
    return std::vector<std::string>{
        "TANDEM_CACHE_DIR",
        "TANDEM_CLUSTER_JOBS",
        "TANDEM_CUDA_HOST_READ_LIMIT",
        "TANDEM_CUDA_LIBRARIES",
        "TANDEM_CUDA_MANAGED_MEMORY",
        "TANDEM_HOSTS",
        "TANDEM_TUNING",
        "TANDEM_EMULATE",
        "TANDEM_LOCAL_TRANSPORT",
        "TANDEM_LOCAL_TRANSPORT_MEMORY_MB",
        "TANDEM_LOGICAL_DEVICES",
        "TANDEM_LOG_DEVICE_PLACEMENT",
        "TANDEM_LOG_LEVEL",
        "TANDEM_MEMORY_GROWTH",
        "TANDEM_MEMORY_LIMIT_MB",
        "TANDEM_PLACEMENT",
        "TANDEM_PLACEMENT_PROFILE",
        "TANDEM_PLUGINS",
        "TANDEM_PORT",
        "TANDEM_SERVICE",
        "TANDEM_SOFT_PLACEMENT",
        "TANDEM_VISIBLE_DEVICES",
    };
  });
  return *names;
}

}  // namespace

bool is_known_variable(std::string_view name) {
  const auto& known = known_variables();
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::vector<UnknownVariable> unknown_variables() {
  std::vector<UnknownVariable> unknown;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("TANDEM_") || name.starts_with("TANDEM_TEST_") ||
        name.starts_with("TANDEM_BENCH_") || is_known_variable(name))
      continue;
    unknown.push_back({std::string(name), nearest_name(name, known_variables())});
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return unknown;
}

void warn_of_unknown_variables() {
  static std::atomic<bool> reported{false};
  const std::vector<UnknownVariable> unknown = unknown_variables();
  if (unknown.empty() || reported.exchange(true)) return;
  std::string line = "Environment variables that Tandem does not know have no effect:";
  for (const UnknownVariable& variable : unknown) {
    line += cat(&variable == &unknown.front() ? " " : ", ", variable.name);
    if (!variable.nearest.empty()) line += cat(" (did you mean ", variable.nearest, "?)");
  }
  log(LogLevel::kWarning, line + ".");
}

}  // namespace tandem
