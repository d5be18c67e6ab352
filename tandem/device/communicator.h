#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// What devices compute together of a value from each.
struct DeviceCollective {
  enum Kind : std::uint8_t { kAllReduce, kAllGather, kBroadcast, kReduceScatter };
  enum Reduction : std::uint8_t { kSum, kProduct, kMax, kMin, kMean };
  Kind kind = kAllReduce;
  Reduction reduction = kSum;  ///< of reductions alone
  int root = 0;                ///< rank of the source; of broadcasts alone
};

/// Devices of one kind that exchange values by themselves, over the links between them.
/// Thread-safe.
class TANDEM_EXPORT Communicator {
 public:
  virtual ~Communicator();

  /// One member's part. Both arrays lie in its device's memory, and stay until `done`, which is
  /// called exactly once, as Work::done is.
  struct Member {
    Array input;  ///< not valid where a broadcast takes none
    Array output;
    std::function<void(std::exception_ptr)> done;
  };

  /// Whether the devices can do this themselves.
  virtual bool supports(const DeviceCollective& what, DType dtype) const = 0;
  /// Enqueues the work on the first compute stream of every device, in the order of its other work,
  /// or on none: what it throws comes before anything is enqueued, and no `done` is called then.
  /// The members are in the order of the devices; their inputs agree in dtype and in the number of
  /// elements, which is not 0. A member that fails after that makes the others fail too.
  virtual void enqueue(const DeviceCollective& what, std::vector<Member> members) = 0;
};

/// The communicator of these devices, of which none comes twice; made at the first call, and kept
/// as long as they are. Null if they cannot work together: there is no way between them but the
/// host's memory. Throws UnavailableError if one is lost, and what their driver reports.
TANDEM_EXPORT std::shared_ptr<Communicator> communicator_of(std::span<Device* const> devices);

}  // namespace tandem
