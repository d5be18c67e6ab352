#pragma once

#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/state/waiting_resource.h"

namespace tandem::cpu {

/// Rows of a gradient by the index of each, in the order of the indices.
struct GradientRows {
  std::vector<std::int64_t> indices;
  Array values;  ///< one row an index
};

/// Adds up gradients of one step until enough are there for somebody to take their mean or sum:
/// what keeps replicas in step in TensorFlow 1 (SyncReplicasOptimizer). A gradient made for an
/// earlier step than the accumulator's is dropped. Taking empties it and goes on to the next step.
/// A taker leaves a callback, in order, and no thread waits. Thread-safe.
class GradientAccumulator final : public WaitingResource {
 public:
  struct Kind {
    std::string type;    ///< the op that makes it
    DType dtype;         ///< half, float or double
    PartialShape shape;  ///< of the gradients; of sparse ones, when written out
    bool mean = true;    ///< what is taken is divided by the number of gradients
    bool sparse = false;
  };
  explicit GradientAccumulator(Kind kind);

  const Kind& kind() const { return kind_; }
  std::string debug_string() const override;

  /// Adds a gradient made for `step`. InvalidArgumentError if its shape is another than the
  /// accumulator's or that of the gradients before it.
  void apply(std::int64_t step, const Array& gradient);
  /// Adds a gradient given as rows: `indices` is an int64 vector, `values` has a row for each, and
  /// `shape`, if not null, holds the shape of the gradient written out. Rows of equal indices are
  /// added where both sides are sorted; the mean of a row is over the gradients that had it.
  void apply_rows(std::int64_t step, const Array& indices, const Array& values, const Array* shape);

  using TakeDone = std::function<void(std::exception_ptr, GradientRows)>;
  /// Hands over what has come once `count` gradients are there: `values` alone unless sparse.
  /// Calls `done` once, perhaps before returning; with CancelledError when `cancellation` says so.
  void take(std::int64_t count, const Cancellation* cancellation, TakeDone done);

  std::int64_t num_accumulated() const;
  /// Warns if the new step is an earlier one.
  void set_global_step(std::int64_t step);

  void cancel_request(std::uint64_t request) override;

 private:
  struct Take {
    std::int64_t count;
    TakeDone done;
    std::uint64_t request;
    RequestWatch watch = {};
  };
  using Callbacks = std::vector<std::function<void()>>;

  void require_rows_fit(const Array& indices, const Array& values, const Array* shape) const;
  void add(const Array& gradient);
  void add_rows(const Array& indices, const Array& values);
  GradientRows handoff();
  void match(Callbacks& ready);
  void drop(std::uint64_t request, Callbacks& ready);

  const Kind kind_;
  mutable std::mutex mutex_;
  std::int64_t step_ = 0;
  std::int64_t count_ = 0;            // of gradients since the last was taken
  GradientRows sum_;                  // in memory of its own
  std::vector<std::int64_t> counts_;  // of gradients that had each row
  std::list<Take> takes_;
  std::uint64_t requests_ = 0;
};

}  // namespace tandem::cpu
