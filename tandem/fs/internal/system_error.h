#pragma once

#include <string>

namespace tandem::fs {

/// Throws the error that belongs to an errno value, "PATH; reason", with advice where there is
/// some.
[[noreturn]] void throw_system_error(int error, const std::string& path);

}  // namespace tandem::fs
