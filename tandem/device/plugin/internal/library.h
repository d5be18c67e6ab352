#pragma once

#include <string>

#include "tandem/core/error.h"
#include "tandem/device/plugin.h"

namespace tandem {

/// A loaded plugin. Lives as long as the process.
struct PluginLibrary {
  std::string path;
  TandemPluginApi api = {};  ///< complete for our version: absent members are null
};

/// Loads and checks a library, or finds it among those already loaded. Thread-safe.
const PluginLibrary& open_plugin_library(const std::string& path);

/// A status for a call: "no error".
TandemStatus no_error();
/// Throws what the status reports, `what` in front of its text.
void check(const TandemStatus& status, const std::string& what);
/// For the other side: code and text of the exception that is being handled.
void report_current_exception(TandemStatus* status) noexcept;
/// The code as one of ours; kUnknown for numbers that we don't know.
Code code_of_status(const TandemStatus& status);
std::string text_of_status(const TandemStatus& status);

}  // namespace tandem
