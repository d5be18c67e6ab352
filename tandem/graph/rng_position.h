#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// The place that random ops draw from while they run for one element of a dataset, instead of
/// going on where they ended the time before. What they draw then follows from their seeds, the
/// stage's seeds, the pass and the element's number: not from the order in which threads take
/// elements, and in another process it is the same. Thread-safe.
class TANDEM_EXPORT RngPosition {
 public:
  /// One pass of one stage.
  struct Stream {
    std::uint64_t seed = 0;  ///< of ops that have none of their own, with the next
    std::uint64_t seed2 = 0;
    std::uint64_t pass = 0;
    std::uint64_t origin = 0;  ///< distinguishes stages made for elements of others; or 0
    bool operator==(const Stream&) const = default;
  };

  /// `trace`: what the function is being traced to; null when it runs.
  explicit RngPosition(const Stream& stream, std::uint64_t element = 0, const void* trace = nullptr)
      : stream_(stream), element_(element), trace_(trace) {}

  /// The calling thread's, or null; for kernels, which know no more of threads. Their context has
  /// it, and the runtime says how to ask for it.
  static RngPosition* current();
  using Current = RngPosition* (*)();
  static void set_current(Current ask);

  const Stream& stream() const { return stream_; }
  std::uint64_t element() const { return element_; }
  const void* trace() const { return trace_; }

  /// For kernels: sets aside so many blocks of a node's numbers for this element, and returns how
  /// many it had before.
  std::uint64_t take(std::string_view node, std::uint64_t seed, std::uint64_t seed2,
                     std::uint64_t blocks);
  static std::uint64_t hash(std::string_view text);

  // Each random op of a function has seeds that no other has, so that it draws the same as a node
  // of a graph and when it is called.
  struct Seeds {
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  /// For the next op without seeds: `kStageSeed`, and its number among them.
  static constexpr std::int64_t kStageSeed = 0x7461'6e64'656d'0a0d;
  Seeds next();
  /// For the next op with these seeds: the first keeps them.
  Seeds next(Seeds given);

  /// Numbers that nothing else at this position has, as seeds of things made here.
  Stream next_stream();

 private:
  struct Use {
    std::uint64_t node, seed, seed2, count;
  };
  static Use& find(std::vector<Use>& uses, const Use& use);

  const Stream stream_;
  const std::uint64_t element_;
  const void* const trace_;
  std::mutex mutex_;  // guards all below
  std::vector<Use> blocks_;
  std::vector<Use> given_;
  std::int64_t unseeded_ = 0;
  std::uint64_t streams_ = 0;
};

}  // namespace tandem
