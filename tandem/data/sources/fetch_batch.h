#pragma once

#include <cstdint>
#include <exception>

#include "tandem/core/error.h"
#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// Draws up to `size` elements and hands them to `take`. An error, of the input or of `take`, is
/// that of the whole batch, as in tf.data: the elements that would have been in it are passed over.
/// Returns how many there were; `ended` if the input had no more. `number` counts what the input
/// gave or failed to give, whether taken or not; `take` sees it before it counts its element.
template <class Take>
std::int64_t fetch_batch(IteratorBase& input, const IterationContext& context, std::int64_t size,
                         bool& ended, std::int64_t& number, Take take) {
  std::exception_ptr error;
  Element element;
  std::int64_t drawn = 0;
  for (; drawn < size; ++drawn) {
    context.check();
    try {
      ended = !input.next(element);
      if (ended) break;
      if (!error) take(element);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      if (!error) error = std::current_exception();
    }
    ++number;
  }
  if (error) std::rethrow_exception(error);
  return drawn;
}

template <class Take>
std::int64_t fetch_batch(IteratorBase& input, const IterationContext& context, std::int64_t size,
                         bool& ended, Take take) {
  std::int64_t number = 0;
  return fetch_batch(input, context, size, ended, number, take);
}

}  // namespace tandem::data
