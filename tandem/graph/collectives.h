#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "tandem/core/array.h"
#include "tandem/core/cancellation.h"
#include "tandem/core/export.h"

namespace tandem {

/// What the members of a group compute together of one value from each. Everything calls back: no
/// thread waits for the other members.
///
/// A group meets under a key. Each member calls once with the same key, size and kind of work, and
/// with a rank that no other has; when all are there each `done` is called once, on the thread that
/// came last. If a member differs, or is cancelled, the whole group fails with that error. A key
/// may be used again when its group is done. Thread-safe.
class TANDEM_EXPORT Collectives {
 public:
  virtual ~Collectives();

  enum class Reduction { kSum, kMean, kMax, kMin, kProduct };
  struct Member {
    std::string key;
    int group_size = 1;
    int rank = 0;
    const Cancellation* cancellation = nullptr;  ///< stays valid until `done`; may be null
  };
  using Done = std::function<void(std::exception_ptr, Array)>;

  /// Every member gets the reduction of all inputs, which agree in shape and dtype (float, double,
  /// int32 or int64), in order of rank: the result does not depend on who comes when.
  virtual void all_reduce(const Member& member, Array input, Reduction reduction, Done done) = 0;
  /// Every member gets the inputs one after the other along the first axis, in order of rank; they
  /// agree in dtype and all other sizes.
  virtual void all_gather(const Member& member, Array input, Done done) = 0;
  /// Every member gets what the member `root` gives.
  virtual void broadcast(const Member& member, Array input, int root, Done done) = 0;
};

}  // namespace tandem
