#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "tandem/core/error.h"
#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// Rethrows the exception being handled, as a td::Error with a line "in map, element 5": what a
/// user's function threw. `origin` says what the element is made of (internal/origin.h).
[[noreturn]] inline void throw_stage_error(const char* stage, std::int64_t element,
                                           const std::string& origin = {}) {
  std::rethrow_exception(
      with_line(std::current_exception(), cat("in ", stage, ", element ", element, origin)));
}

/// The next element of a map's input. What the input failed to give counts in `number`, as it does
/// where the map runs together with the stage that failed.
inline bool next_counted(IteratorBase& input, Element& out, std::int64_t& number) {
  try {
    return input.next(out);
  } catch (const CancelledError&) {
    throw;
  } catch (...) {
    ++number;
    throw;
  }
}

/// Rethrows the exception being handled, of a stage that keeps elements and could not write them to
/// `path`: before element `element`, or at it. `other` is what to choose instead.
[[noreturn]] void throw_write_error(const char* stage, std::int64_t element,
                                    const std::string& path, const char* other);

}  // namespace tandem::data
