#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tandem/core/array.h"

namespace tandem {

class Cancellation;
class Plan;

/// A function made ready to run. Thread-safe: several calls may run at a time.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs on the calling thread (and pool workers); throws the first failure.
  virtual std::vector<Array> run(std::vector<Array> args, const Cancellation* cancellation) = 0;
  /// The same, with results made in these places where that can be done: one for each result,
  /// undefined where the caller has none. A result that is elsewhere, or of another shape, tells so
  /// by its memory.
  virtual std::vector<Array> run_into(std::vector<Array> args,
                                      [[maybe_unused]] std::span<const Array> places,
                                      const Cancellation* cancellation) {
    return run(std::move(args), cancellation);
  }
  /// The plan that the next call follows; null if it follows none.
  virtual const Plan* next_plan() = 0;
};

}  // namespace tandem
