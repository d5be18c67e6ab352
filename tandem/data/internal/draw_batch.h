#pragma once

#include <cstdint>
#include <exception>

#include "tandem/core/error.h"
#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// Draws up to `size` elements and hands them to `take`. An error, of the input or of `take`, is
/// that of the whole batch, as in tf.data: the elements that would have been in it are passed over.
/// Returns how many there were; `ended` if the input had no more.
template <class Take>
std::int64_t draw_batch(IteratorBase& input, std::int64_t size, bool& ended, Take take) {
  std::exception_ptr error;
  Element element;
  std::int64_t drawn = 0;
  for (; drawn < size; ++drawn) {
    try {
      ended = !input.next(element);
      if (ended) break;
      if (!error) take(element);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  return drawn;
}

}  // namespace tandem::data
