#include "tandem/device/host/host_backend.h"

#include <cstring>
#include <fstream>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"

namespace tandem {
namespace {

class HostAllocator final : public Allocator {
 public:
  Ref<Buffer> allocate(std::size_t bytes) override { return allocate_host_buffer(bytes); }
  MemoryStats stats() const override {
    const HostMemoryStats stats = host_memory_stats();
    return {stats.current, stats.peak, 0};
  }
};

class DoneEvent final : public Event {
 public:
  bool done() const override { return true; }
  void wait() override {}
};

class HostStream final : public Stream {
 public:
  void enqueue(Work work) override { work.run(); }
  Ref<Event> record() override { return make_ref<DoneEvent>(); }
  void wait_for(Event& event) override { event.wait(); }
  void synchronize() override {}
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

class HostDevice final : public Device {
 public:
  explicit HostDevice(DeviceSpec spec) : Device(std::move(spec)), description_(processor_name()) {}
  const std::string& kernel_class() const override { return kernel_class_; }
  std::string description() const override { return description_; }
  bool synchronous() const override { return true; }
  Allocator& allocator() override { return allocator_; }
  Stream& stream(int index) override {
    if (index != 0)
      throw InvalidArgumentError(cat("The CPU has one stream, not a stream ", index, "."));
    return stream_;
  }
  int num_streams() const override { return 1; }
  void copy_to_host(const Buffer& from, std::size_t offset, void* to, std::size_t bytes) override {
    std::memcpy(to, static_cast<const std::byte*>(from.data()) + offset, bytes);
  }
  void copy_from_host(const void* from, Buffer& to, std::size_t offset,
                      std::size_t bytes) override {
    std::memcpy(static_cast<std::byte*>(to.data()) + offset, from, bytes);
  }

 private:
  const std::string kernel_class_ = "cpu";
  const std::string description_;
  HostAllocator allocator_;
  HostStream stream_;
};

}  // namespace

std::vector<std::shared_ptr<Device>> HostBackend::make_devices() {
  DeviceSpec spec;
  spec.job = "localhost";
  spec.replica = 0;
  spec.task = 0;
  spec.type = "CPU";
  spec.index = 0;
  return {std::make_shared<HostDevice>(std::move(spec))};
}

}  // namespace tandem
