#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "tandem/core/export.h"

namespace tandem {

/// A borrowed reference to a callable `void(std::int64_t begin, std::int64_t end)`; it must outlive
/// the call.
class RangeFn {
 public:
  template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, RangeFn>, int> = 0>
  RangeFn(F&& f)  // NOLINT: implicit, so that lambdas can be passed
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

/// The runtime's one budget of threads for work inside a kernel: the caller and `threads - 1`
/// workers.
///
/// Thread-safe. One call at a time has the workers; a call that finds them taken (another caller,
/// or a nested call) runs all its pieces on its own thread, so there are never more than callers +
/// (threads - 1) threads running. Pieces must not block. The first exception that a piece throws is
/// rethrown to the caller after all have ended.
class TANDEM_EXPORT IntraOpPool {
 public:
  explicit IntraOpPool(int threads);
  ~IntraOpPool();
  IntraOpPool(const IntraOpPool&) = delete;
  IntraOpPool& operator=(const IntraOpPool&) = delete;

  int threads() const { return threads_; }

  /// How often the calling thread has had the workers, in any pool. It shows whether a kernel is
  /// parallel by itself.
  static std::uint64_t uses_by_this_thread();

  /// Calls `fn` on pieces that together make up [0, count). `cost` is the time of one element in
  /// nanoseconds, roughly: work too small to gain from another thread stays on the caller as one
  /// piece [0, count).
  void parallel_for(std::int64_t count, double cost, RangeFn fn) {
    if (threads_ == 1 || count <= 1 || static_cast<double>(count) * cost < kWorthwhile) {
      if (count > 0) fn(0, count);
    } else {
      split(count, cost, fn);
    }
  }

  /// Calls `fn(i, i + 1)` for each i in [0, pieces), whatever the number of threads: where sums
  /// must not depend on how the work was split.
  void for_each_piece(std::int64_t pieces, RangeFn fn);

  /// Ends the workers; callers then do all pieces themselves. Does nothing the second time. May be
  /// called by a worker, which then ends by itself.
  void stop();

 private:
  static constexpr double kWorthwhile =
      20'000;  // ns: several times what handing over and joining costs
  void split(std::int64_t count, double cost, RangeFn fn);

  struct State;
  int threads_;
  std::shared_ptr<State> state_;
};

}  // namespace tandem
