#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"

namespace tandem {

class Plan;

/// A function made ready to run. Thread-safe: several calls may run at a time.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs on the calling thread (and pool workers) as part of a step; throws the first failure.
  virtual std::vector<Array> run(std::vector<Array> args, const StepContext& within) = 0;
  /// The same, with results made in these places where that can be done: one for each result,
  /// undefined where the caller has none. A result that is elsewhere, or of another shape, says so
  /// by its memory.
  virtual std::vector<Array> run_into(std::vector<Array> args,
                                      [[maybe_unused]] std::span<const Array> places,
                                      const StepContext& within) {
    return run(std::move(args), within);
  }
  /// Runs for callers that have room for both lists: empties `args` and sets `results`, one for
  /// each result. A plan whose values have their places takes no heap memory.
  virtual void run_between(std::span<Array> args, std::span<const Array> places,
                           std::span<Array> results, const StepContext& within) {
    std::vector<Array> given(std::make_move_iterator(args.begin()),
                             std::make_move_iterator(args.end()));
    std::vector<Array> made =
        places.empty() ? run(std::move(given), within) : run_into(std::move(given), places, within);
    std::move(made.begin(), made.end(), results.begin());
  }
  /// The same without a thread that waits for it: calls `done` once, from any thread, perhaps
  /// before it returns. `within` and this object stay valid until then. Throws nothing.
  virtual void run_async(std::vector<Array> args, const StepContext& within,
                         FunctionRunner::Done done) = 0;
  /// The plan that the next call follows; null if it follows none.
  virtual const Plan* next_plan() = 0;

  /// Bytes that it holds for values while no call uses them, and for itself, roughly.
  virtual std::size_t idle_bytes() const { return 0; }
  virtual std::size_t plan_bytes() const { return 0; }
  /// Frees the former.
  virtual void free_idle_memory() {}
};

}  // namespace tandem
