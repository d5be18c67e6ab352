#include "tests/unit/runtime/device_config_util.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <gtest/gtest.h>

#include "tandem/core/buffer.h"
#include "tandem/device/host/host_backend.h"

namespace tandem {
namespace {

class CountingAllocator final : public Allocator {
 public:
  explicit CountingAllocator(std::size_t limit) { stats_.limit = limit; }
  Ref<Buffer> allocate(std::size_t bytes) override {
    stats_.current += bytes;
    stats_.peak = std::max(stats_.peak, stats_.current);
    return allocate_host_buffer(bytes);
  }
  MemoryStats stats() const override { return stats_; }
  void reset_peak() override { stats_.peak = stats_.current; }

 private:
  MemoryStats stats_;
};

class CountingDevice final : public Device {
 public:
  CountingDevice(DeviceSpec spec, DeviceProperties properties, std::size_t limit)
      : Device(spec), properties_(std::move(properties)), allocator_(limit) {
    HostBackend host;
    host_ = host.make_device(host.physical_devices().front(), {}, std::move(spec));
  }
  const std::string& kernel_class() const override { return host_->kernel_class(); }
  const DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return true; }
  Allocator& allocator() override { return allocator_; }
  Stream& stream(StreamKind kind, int index) override { return host_->stream(kind, index); }
  int num_streams(StreamKind) const override { return 1; }
  bool can_copy_to(const Device&) const override { return true; }

 private:
  DeviceProperties properties_;
  CountingAllocator allocator_;
  std::shared_ptr<Device> host_;
};

}  // namespace

std::vector<PhysicalDevice> CountingBackend::physical_devices() const {
  std::vector<PhysicalDevice> devices;
  for (int i = 0; i < count_; ++i)
    devices.push_back({cat("/physical_device:", type_, ":", i), type_});
  return devices;
}

DeviceProperties CountingBackend::properties(const PhysicalDevice& physical) const {
  DeviceProperties properties;
  properties.description = "counts";
  properties.memory_bytes = memory_bytes_;
  properties.details = {{"device_name", "Counting " + physical.name}};
  return properties;
}

std::shared_ptr<Device> CountingBackend::make_device(const PhysicalDevice& physical,
                                                     const LogicalDeviceOptions& options,
                                                     DeviceSpec spec) {
  made.push_back({physical, options, spec.to_string()});
  return std::make_shared<CountingDevice>(std::move(spec), properties(physical),
                                          options.memory_limit.value_or(memory_bytes_));
}

EnvironmentScope::EnvironmentScope(Variables variables) {
  for (const auto& [name, value] : variables) {
    setenv(name, value, 1);
    names_.emplace_back(name);
  }
}
EnvironmentScope::~EnvironmentScope() {
  for (const std::string& name : names_) unsetenv(name.c_str());
}

std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return cat(code_name(error.code()), ": ", error.what());
  } catch (const std::exception& error) {
    return cat("an exception of another kind: ", error.what());
  }
  return "nothing was thrown";
}

void in_new_process(const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        std::exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace tandem
