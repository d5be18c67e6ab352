#pragma once

#include <cstdint>
#include <exception>

#include "tandem/core/error.h"

namespace tandem::data {

/// Rethrows the exception being handled, as a td::Error with a line "in map, element 5": what a
/// user's function threw.
[[noreturn]] inline void throw_stage_error(const char* stage, std::int64_t element) {
  std::rethrow_exception(
      with_line(std::current_exception(), cat("in ", stage, ", element ", element)));
}

}  // namespace tandem::data
