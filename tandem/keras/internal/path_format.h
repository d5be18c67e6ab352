#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/keras/logs.h"

namespace tandem::keras::internal {

/// Replaces "{name}" and "{name:format}" in a path by the log of that name, `epoch` or `batch`
/// (both counted from 1; 0: there is none), as Python's str.format does for the formats d, e, f, g
/// and % with width and precision. "{{" and "}}" are braces. Throws InvalidArgumentError.
std::string format_path(std::string_view path, int epoch, std::int64_t batch, const Logs& logs);

}  // namespace tandem::keras::internal
