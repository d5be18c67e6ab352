#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
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
  /// undefined where the caller has none. A result that is elsewhere, or of another shape, says so
  /// by its memory.
  virtual std::vector<Array> run_into(std::vector<Array> args,
                                      [[maybe_unused]] std::span<const Array> places,
                                      const Cancellation* cancellation) {
    return run(std::move(args), cancellation);
  }
  /// Runs for callers that have room for both lists: empties `args` and sets `results`, one for
  /// each result. A plan whose values have their places takes no heap memory.
  virtual void run_between(std::span<Array> args, std::span<const Array> places,
                           std::span<Array> results, const Cancellation* cancellation) {
    std::vector<Array> given(std::make_move_iterator(args.begin()),
                             std::make_move_iterator(args.end()));
    std::vector<Array> made = places.empty() ? run(std::move(given), cancellation)
                                             : run_into(std::move(given), places, cancellation);
    std::move(made.begin(), made.end(), results.begin());
  }
  /// The plan that the next call follows; null if it follows none.
  virtual const Plan* next_plan() = 0;

  /// Bytes that it holds for values while no call uses them, and for itself, roughly.
  virtual std::size_t idle_bytes() const { return 0; }
  virtual std::size_t plan_bytes() const { return 0; }
  /// Frees the former.
  virtual void free_idle_memory() {}
};

}  // namespace tandem
