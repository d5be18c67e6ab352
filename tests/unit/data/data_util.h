#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/dataset.h"

#include "tests/unit/folder.h"

namespace tandem::data {

/// The int64 scalars in the first components of the next `limit` elements.
std::vector<std::int64_t> numbers(const Dataset& dataset, std::size_t limit = 1000);
std::vector<std::int64_t> numbers(Iterator& iterator, std::size_t limit = 1000);

/// The elements as text, "1 2 | 3 4", components of an element joined by ';'.
std::string text(const Dataset& dataset);

/// 0 to count - 1.
std::vector<std::int64_t> upto(std::int64_t count);

/// Runs `f`, which must throw an E, and returns its message.
template <class E, class F>
std::string message_of_thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// A scalar map for tests that need no ops.
inline Tensor plus(const Tensor& x, std::int64_t y) { return Tensor(x.item<std::int64_t>() + y); }

/// The elements of an iteration as texts.
std::vector<std::string> rest(Iterator& iterator);

/// Saves after every number of elements and restores in a new pipeline: what remains, and the
/// iteration after it, must be what would have followed.
void expect_resumes(const std::function<Dataset()>& make);

/// What an iteration gives, up to `limit` elements and errors: these as "error: ...".
std::vector<std::string> events(Iterator& iterator, std::size_t limit = 1000);
std::vector<std::string> events(const Dataset& dataset, std::size_t limit = 1000);

/// The stages as they were written.
inline Dataset unfused(const Dataset& dataset) { return dataset.with_options({.fusion = false}); }

/// That both give the same elements and errors, and that an iteration of the fused one goes on from
/// wherever it was saved, in the first `saves` places.
void expect_fuses(const Dataset& dataset, std::size_t saves = 30);

/// Threads of this process.
std::size_t thread_count();
/// The same, once it has stayed as it is for a while: threads that have been joined are listed for
/// a moment still.
std::size_t threads_at_rest();

}  // namespace tandem::data
