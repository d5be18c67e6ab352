#pragma once

#include <cstdlib>
#include <string>

// In the header, as libraries that do not link to libtandem use it too.

namespace tandem::internal {

/// Empty if the variable is not set.
inline std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// The folder of what was measured or compiled once for later processes: TANDEM_CACHE_DIR, else
/// XDG_CACHE_HOME/tandem, else HOME/.cache/tandem; empty if none of them is set.
inline std::string cache_folder() {
  if (std::string own = environment_text("TANDEM_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = environment_text("XDG_CACHE_HOME"); !xdg.empty())
    return xdg + "/tandem";
  if (const std::string home = environment_text("HOME"); !home.empty())
    return home + "/.cache/tandem";
  return {};
}

}  // namespace tandem::internal
