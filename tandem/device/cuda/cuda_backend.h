#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/library_report.h"

namespace tandem {

/// NVIDIA GPUs, by a library of its own, libtandem_cuda.so, which is opened when a driver is there:
/// one build serves machines with and without. Device type GPU, kernel class "cuda".
///
/// Making one never throws: where there is no driver, no library or no GPU, there are no devices
/// and `unavailable` says why. CUDA_VISIBLE_DEVICES is the driver's own and holds here too.
class TANDEM_EXPORT CudaBackend final : public Backend, public LibraryReport {
 public:
  CudaBackend();
  /// A backend of a driver and a library elsewhere; an empty library is the one beside
  /// libtandem.so. For tests: the first that is opened in a process stays.
  CudaBackend(const std::string& driver, const std::string& library);
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  std::vector<PhysicalDevice> physical_devices() const override;
  DeviceProperties properties(const PhysicalDevice& physical) const override;
  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override;
  std::string unavailable() const override;
  std::string libraries() const override;

 private:
  Backend& opened() const;

  std::unique_ptr<Backend> plugin_;
  std::string why_not_;
};

}  // namespace tandem
