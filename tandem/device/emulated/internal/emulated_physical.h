#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_spec.h"

namespace tandem {

class EmulatedCore;
class EmulatedMemory;

using EmulatedTime = std::chrono::steady_clock::time_point;

/// Seconds as the clock counts them; more than a quarter of a year is a quarter of a year.
std::chrono::steady_clock::duration emulated_duration(double seconds);

/// One piece of emulated hardware: what its logical devices share. Thread-safe.
class EmulatedPhysical {
 public:
  /// Devices with the same `backend` exchange data directly.
  EmulatedPhysical(EmulatedSpec spec, PhysicalDevice id, std::uint64_t backend);

  const EmulatedSpec& spec() const { return spec_; }
  const PhysicalDevice& id() const { return id_; }
  std::uint64_t backend() const { return backend_; }

  /// Between `least` and `wanted` bytes of its memory, or 0 where there is not even the least.
  std::size_t take_memory(std::size_t least, std::size_t wanted);
  void return_memory(std::size_t bytes);
  /// Has all logical devices but the one with this memory return what they don't use. True if
  /// they gave anything.
  bool ask_for_memory(const EmulatedMemory* asks);
  std::size_t memory_left() const;

  /// Each counts an event and says whether it is the one that goes wrong.
  bool loses_this_enqueue() { return enqueues_.count(); }
  bool fails_this_allocation() { return allocations_.count(); }
  bool stalls_this_copy() { return copies_.count(); }
  /// Faults from now on: counts begin with the next event. Zeroes leave a count as it is.
  void inject(const EmulatedFaults& faults);

  /// Seconds that a copy takes on the link.
  double link_seconds(double bytes) const;
  /// A stretch of time on the link, as early as `ready` and earlier copies allow; its begin.
  static EmulatedTime reserve_in(EmulatedPhysical& to, EmulatedTime ready, double seconds);
  static EmulatedTime reserve_out(EmulatedPhysical& from, EmulatedTime ready, double seconds);
  static EmulatedTime reserve_between(EmulatedPhysical& from, EmulatedPhysical& to,
                                      EmulatedTime ready, double seconds);

  void join(const std::shared_ptr<EmulatedCore>& core);
  /// All logical devices there are now stop working.
  void lose(const std::string& why);

 private:
  std::vector<std::shared_ptr<EmulatedCore>> cores() const;
  struct Fault {
    std::atomic<std::uint64_t> seen{0};
    std::atomic<std::uint64_t> at{0};
    bool count() { return seen.fetch_add(1) + 1 == at.load(); }
    void in(std::uint64_t events) {
      if (events != 0) at = seen.load() + events;
    }
  };

  const EmulatedSpec spec_;
  const PhysicalDevice id_;
  const std::uint64_t backend_;
  Fault enqueues_, allocations_, copies_;
  std::atomic<double> slow_;

  mutable std::mutex mutex_;  // of all below
  std::size_t taken_ = 0;
  std::vector<std::weak_ptr<EmulatedCore>> cores_;

  std::mutex link_mutex_;  // of both directions, which work at the same time
  EmulatedTime in_free_{};
  EmulatedTime out_free_{};
};

}  // namespace tandem
