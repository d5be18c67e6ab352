#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_spec.h"

namespace tandem {

class EmulatedCore;
class EmulatedPhysical;

/// What a stream did since the device was made or reset_usage was called.
struct StreamUsage {
  double busy_seconds = 0;  ///< modelled, or of real work measured
  std::uint64_t works = 0;  ///< pieces of work and copies
  double bytes = 0;         ///< that they moved or touched
};

/// One piece of work or one copy that is over, by the device's clock: what was enqueued early
/// enough begins where its predecessor ends.
struct StreamRecord {
  StreamKind stream = StreamKind::kCompute;
  int index = 0;
  bool copy = false;
  double bytes = 0;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// An accelerator made out of host memory and threads; it says so in its description.
///
/// Its memory is apart: host code that follows one of its pointers faults. Each stream is a thread,
/// started when it is first used. Copies take latency and bytes / link seconds, and really move the
/// bytes. With compute=real work takes the time it takes; with compute=timed it takes the larger of
/// flops and bytes by the device's rates, during which no core of the host is used.
///
/// Destroying it lets pending work run first, without taking modelled time; what waits for an event
/// of another device that has not happened, or is stalled, fails.
class TANDEM_EXPORT EmulatedDevice final : public Device {
 public:
  EmulatedDevice(std::shared_ptr<EmulatedCore> core, DeviceSpec spec);
  ~EmulatedDevice() override;

  const std::string& kernel_class() const override;
  const DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return false; }
  const MemorySpace* memory_space() const override;
  Allocator& allocator() override;
  Allocator& staging_allocator() override;
  Stream& stream(StreamKind kind, int index = 0) override;
  int num_streams(StreamKind kind) const override;
  bool can_copy_to(const Device& other) const override;
  std::string lost() const override;

  StreamUsage usage(StreamKind kind, int index = 0) const;
  void reset_usage();
  /// Records are kept while on, in the order in which work of a stream was over.
  void keep_records(bool on);
  std::vector<StreamRecord> take_records();

  /// Faults of its hardware from now on: counts begin with the next event.
  void inject_fault(const EmulatedFaults& faults);
  /// Its hardware, with all logical devices on it, stops working now.
  void lose(const std::string& why);

  const std::shared_ptr<EmulatedCore>& core() const { return core_; }  ///< for the backend

 private:
  const std::shared_ptr<EmulatedCore> core_;
  const std::string kernel_class_;
  DeviceProperties properties_;
};

/// The properties of a device of this spec.
TANDEM_EXPORT DeviceProperties emulated_properties(const EmulatedSpec& spec);

}  // namespace tandem
