#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "tandem/core/error.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// Rethrows the exception being handled, as a td::Error with a line "in map, element 5": what a
/// user's function threw.
[[noreturn]] inline void throw_stage_error(const char* stage, std::int64_t element) {
  std::rethrow_exception(
      with_line(std::current_exception(), cat("in ", stage, ", element ", element)));
}

/// Of what a user's function returned.
inline void check_defined(const Element& element) {
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (!element[i].defined()) {
      throw InvalidArgumentError(
          cat("The function returned an undefined tensor (component ", i, ")."));
    }
  }
}

/// Rethrows the exception being handled, of a stage that keeps elements and could not write them to
/// `path`: before element `element`, or at it. `other` is what to choose instead.
[[noreturn]] void throw_write_error(const char* stage, std::int64_t element,
                                    const std::string& path, const char* other);

}  // namespace tandem::data
