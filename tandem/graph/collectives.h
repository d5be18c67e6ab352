#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "tandem/core/array.h"
#include "tandem/core/cancellation.h"
#include "tandem/core/export.h"

namespace tandem {

class Device;  // tandem/device/device.h

/// What the members of a group compute together of one value from each. Everything calls back: no
/// thread waits for the other members.
///
/// A group meets under a key. Each member calls once with the same key, size and kind of work; when
/// all are there each `done` is called once, on the thread that came last or on one of a device's,
/// where it must not block. Until then nothing has begun: if a member differs, is cancelled or does
/// not come in time, the whole group fails with that error. A key may be used again when its group
/// is done. Thread-safe.
///
/// An input lies in host memory or in that of `Member::memory`, and is read until `done` at most;
/// the result is in memory of its own there. Shapes and dtypes that do not go together are an
/// InvalidArgumentError of all members.
class TANDEM_EXPORT Collectives {
 public:
  virtual ~Collectives();

  enum class Reduction { kSum, kMean, kMax, kMin, kProduct };
  struct Member {
    static constexpr int kByDevice = -1;
    std::string key;
    int group_size = 1;
    int rank = kByDevice;            ///< which no other member has; or in order of the devices
    const Device* device = nullptr;  ///< of the member, of which no other is; for kByDevice
    Device* memory = nullptr;        ///< where the result is to lie; null: in the host's memory
    std::chrono::duration<double> timeout{0};    ///< for all others to come; 0: for ever
    const Cancellation* cancellation = nullptr;  ///< stays valid until `done`; may be null
  };
  using Done = std::function<void(std::exception_ptr, Array)>;

  /// Every member gets the reduction of all inputs, which agree in shape and dtype (float, double,
  /// half, bfloat16, int32 or int64): the result does not depend on who comes when. The mean of
  /// integers is rounded towards zero.
  virtual void all_reduce(const Member& member, Array input, Reduction reduction, Done done) = 0;
  /// Each member gets its part of that, by rank, of as many parts along the first axis as there are
  /// members.
  virtual void reduce_scatter(const Member& member, Array input, Reduction reduction,
                              Done done) = 0;
  /// Every member gets the inputs one after the other along the first axis, in order of rank; they
  /// agree in dtype and all other sizes.
  virtual void all_gather(const Member& member, Array input, Done done) = 0;
  /// Every member gets what the source gives, the one that has an input; the others' are not valid.
  virtual void broadcast(const Member& member, Array input, Done done) = 0;

  /// All groups that are not complete fail with the error, and so does who comes from now on: what
  /// they belong to has failed. The first error stays.
  virtual void start_abort(std::exception_ptr error) = 0;
};

}  // namespace tandem
