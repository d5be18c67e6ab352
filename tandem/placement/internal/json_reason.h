#pragma once

#include <exception>
#include <string>

namespace tandem {

/// Why a text is no JSON, as a user should read it: what the library's exception says without the
/// number of the error with which it begins.
std::string json_reason(const std::exception& error);

}  // namespace tandem
