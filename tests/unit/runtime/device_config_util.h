#pragma once

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/device.h"

namespace tandem {

/// Accelerators that compute like the CPU and keep count of their memory.
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::string type, int count, std::size_t memory_bytes)
      : type_(std::move(type)), count_(count), memory_bytes_(memory_bytes) {}

  std::string name() const override { return "counting"; }
  std::vector<PhysicalDevice> physical_devices() const override;
  DeviceProperties properties(const PhysicalDevice& physical) const override;
  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override;
  std::string unavailable() const override { return count_ == 0 ? "nothing was counted" : ""; }

  /// What the devices were cut like, in the order of their making.
  struct Made {
    PhysicalDevice physical;
    LogicalDeviceOptions options;
    std::string name;
  };
  std::vector<Made> made;

 private:
  std::string type_;
  int count_;
  std::size_t memory_bytes_;
};

/// Sets environment variables for a block.
class EnvironmentScope {
 public:
  using Variables = std::initializer_list<std::pair<const char*, const char*>>;
  explicit EnvironmentScope(Variables variables);
  ~EnvironmentScope();
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  std::vector<std::string> names_;
};

/// "INVALID_ARGUMENT: text" of what the call throws, "nothing was thrown" otherwise.
std::string thrown_by(const std::function<void()>& call);

/// Runs `body` in a new process, where the default runtime has not started; what it expects is
/// reported here.
void in_new_process(const std::function<void()>& body);

}  // namespace tandem
