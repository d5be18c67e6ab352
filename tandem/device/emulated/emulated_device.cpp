#include "tandem/device/emulated/emulated_device.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/emulated/internal/emulated_core.h"
#include "tandem/device/internal/byte_size.h"
#include "tandem/device/kernel_class.h"

namespace tandem {
namespace {

class StagingAllocator final : public Allocator {
 public:
  Ref<Buffer> allocate(std::size_t bytes) override { return allocate_host_buffer(bytes); }
  std::size_t counted_bytes(std::size_t bytes) const override {
    return counted_host_buffer_bytes(bytes);
  }
  MemoryStats stats() const override {
    const HostMemoryStats stats = host_memory_stats();
    return {.current = stats.current, .peak = stats.peak};
  }
};

}  // namespace

DeviceProperties emulated_properties(const EmulatedSpec& spec) {
  DeviceProperties p;
  p.description = cat("emulated ", spec.type, ", ", byte_text(spec.memory), ", link ",
                      rate_text(spec.link), spec.timed ? ", timed" : "");
  if (!spec.kernel_class.empty()) p.description += ", class=" + spec.kernel_class;
  for (std::size_t i = 0; i < spec.without.size(); ++i)
    p.description += cat(i == 0 ? ", without=" : "|", spec.without[i]);
  if (const std::string faults = spec.fault.to_string(); !faults.empty())
    p.description += ", fault=" + faults;
  p.memory_bytes = spec.memory;
  p.flops = spec.flops;
  p.memory_bandwidth = spec.bandwidth;
  p.link_bandwidth = spec.link / spec.fault.slow;
  p.link_latency = spec.latency * spec.fault.slow;
  p.compute_streams = spec.streams;
  p.emulated = true;
  p.computes = !spec.timed;
  p.without = spec.without;
  p.details = {{"device_name", "emulated " + spec.type},
               {"emulated", spec.to_string()},
               {"compute", spec.timed ? "timed" : "real"}};
  return p;
}

EmulatedDevice::EmulatedDevice(std::shared_ptr<EmulatedCore> core, DeviceSpec spec)
    : Device(std::move(spec)),
      core_(std::move(core)),
      kernel_class_(emulated_kernel_class(core_->spec().kernel_class)),
      properties_(emulated_properties(core_->spec())) {
  properties_.memory_bytes = core_->memory_limit();
  core_->space().device = this;
}

EmulatedDevice::~EmulatedDevice() {
  core_->close();
  core_->space().device = nullptr;
}

const std::string& EmulatedDevice::kernel_class() const { return kernel_class_; }

const MemorySpace* EmulatedDevice::memory_space() const { return &core_->space(); }
Allocator& EmulatedDevice::allocator() { return *core_; }

Allocator& EmulatedDevice::staging_allocator() {
  static NeverDestroyed<StagingAllocator> staging;
  return *staging;
}

Stream& EmulatedDevice::stream(StreamKind kind, int index) { return core_->stream(kind, index); }
int EmulatedDevice::num_streams(StreamKind kind) const { return core_->num_streams(kind); }

bool EmulatedDevice::can_copy_to(const Device& other) const {
  if (other.memory_space() == nullptr) return true;
  const auto* peer = dynamic_cast<const EmulatedDevice*>(&other);
  return peer && peer->core_->physical()->backend() == core_->physical()->backend();
}

std::string EmulatedDevice::lost() const { return core_->why_lost(); }

StreamUsage EmulatedDevice::usage(StreamKind kind, int index) const {
  return core_->stream(kind, index).usage();
}

void EmulatedDevice::reset_usage() {
  core_->for_each_stream([](EmulatedStream& stream) { stream.reset_usage(); });
}

void EmulatedDevice::keep_records(bool on) { core_->keep_records(on); }
std::vector<StreamRecord> EmulatedDevice::take_records() { return core_->take_records(); }

void EmulatedDevice::inject_fault(const EmulatedFaults& faults) {
  core_->physical()->inject(faults);
}

void EmulatedDevice::lose(const std::string& why) { core_->physical()->lose(why); }

}  // namespace tandem
