#include "tandem/device/host/host_backend.h"

#include <cstring>
#include <exception>
#include <fstream>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/machine.h"

namespace tandem {
namespace {

class HostAllocator final : public Allocator {
 public:
  Ref<Buffer> allocate(std::size_t bytes) override {
    try {
      return allocate_host_buffer(bytes);
    } catch (const ResourceExhaustedError&) {
      const std::string_view holder = AllocationScope::current();
      if (holder.empty()) throw;
      std::rethrow_exception(
          with_line(std::current_exception(), cat("It was asked for by ", holder, ".")));
    }
  }
  MemoryStats stats() const override {
    const HostMemoryStats stats = host_memory_stats();
    return {.current = stats.current, .peak = stats.peak};
  }
  std::size_t counted_bytes(std::size_t bytes) const override {
    return counted_host_buffer_bytes(bytes);
  }
  void reset_peak() override { host_reset_peak(); }
};

class DoneEvent final : public Event {
 public:
  bool done() const override { return true; }
  void wait() override {}
};

// Work is over when enqueue returns; what it threw is kept until somebody asks.
class HostStream final : public Stream {
 public:
  void enqueue(Work work) override {
    run([&] { work.run(); }, work.done);
  }
  void enqueue(Copy copy) override {
    run(
        [&] {
          if (copy.bytes != 0) {
            std::memcpy(static_cast<std::byte*>(copy.to->data()) + copy.to_offset,
                        static_cast<const std::byte*>(copy.from->data()) + copy.from_offset,
                        copy.bytes);
          }
        },
        copy.done);
  }
  Ref<Event> record() override { return make_ref<DoneEvent>(); }
  void wait_for(Ref<Event> event) override {
    if (!event) throw InvalidArgumentError("A stream was given no event to wait for.");
    try {
      event->wait();
    } catch (...) {
      // It is over; its recorder has the error.
    }
  }
  void synchronize() override {}

 private:
  template <class Body>
  static void run(Body body, const std::function<void(std::exception_ptr)>& done) {
    if (!done) return body();
    std::exception_ptr error;
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
    done(error);
  }
};

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "CPU";
}

DeviceProperties host_properties() {
  DeviceProperties p;
  p.description = processor_name();
  p.memory_bytes = machine_limits().memory;
  return p;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(DeviceSpec spec) : Device(std::move(spec)) {}
  const std::string& kernel_class() const override { return kernel_class_; }
  const DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return true; }
  Allocator& allocator() override { return allocator_; }
  Stream& stream(StreamKind, int index) override {
    if (index != 0)
      throw InvalidArgumentError(cat("The CPU has one stream, not a stream ", index, "."));
    return stream_;
  }
  int num_streams(StreamKind) const override { return 1; }
  bool can_copy_to(const Device& other) const override { return other.memory_space() == nullptr; }

 private:
  const std::string kernel_class_ = "cpu";
  const DeviceProperties properties_ = host_properties();
  HostAllocator allocator_;
  HostStream stream_;
};

}  // namespace

std::vector<PhysicalDevice> HostBackend::physical_devices() const {
  return {{"/physical_device:CPU:0", "CPU"}};
}

DeviceProperties HostBackend::properties(const PhysicalDevice&) const { return host_properties(); }

std::shared_ptr<Device> HostBackend::make_device(const PhysicalDevice&,
                                                 const LogicalDeviceOptions& options,
                                                 DeviceSpec spec) {
  if (options.memory_limit) {
    throw InvalidArgumentError(
        "Setting memory limit on CPU virtual devices is currently not supported");
  }
  return std::make_shared<HostDevice>(std::move(spec));
}

}  // namespace tandem
