#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/device/block_allocator.h"
#include "tandem/device/device.h"
#include "tandem/device/hardware_trace.h"
#include "tandem/device/host_reads.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin/internal/library.h"
#include "tandem/device/plugin/internal/plugin_stream.h"

namespace tandem {

/// The plugin's handle, closed with the last who needs it: device, memory, staging memory.
class PluginHandle {
 public:
  PluginHandle(const PluginLibrary& library, int physical, const LogicalDeviceOptions& options,
               const std::string& name);
  ~PluginHandle();
  PluginHandle(const PluginHandle&) = delete;
  PluginHandle& operator=(const PluginHandle&) = delete;

  const PluginLibrary& library() const { return library_; }
  const TandemPluginApi& api() const { return library_.api; }
  TandemDevice* get() const { return device_; }
  const TandemDeviceTraits& traits() const { return traits_; }
  int physical() const { return physical_; }

 private:
  const PluginLibrary& library_;
  const int physical_;
  TandemDevice* device_ = nullptr;
  TandemDeviceTraits traits_ = {};
};

/// A device by the C interface. Memory is taken from the plugin in large pieces and cut into blocks
/// here, so that limits and texts are those of every device. Buffers keep the device.
class PluginDevice final : public Device,
                           public HostMemoryReader,
                           public HardwareTracer,
                           public std::enable_shared_from_this<PluginDevice> {
 public:
  /// The last to let go of it may be a thread of its own.
  static std::shared_ptr<PluginDevice> make(const PluginLibrary& library, int physical,
                                            const DeviceProperties& properties,
                                            const LogicalDeviceOptions& options, DeviceSpec spec);
  ~PluginDevice() override;

  const std::string& kernel_class() const override { return kernel_class_; }
  const DeviceProperties& properties() const override { return properties_; }
  bool synchronous() const override { return false; }
  const MemorySpace* memory_space() const override { return &space_; }
  Allocator& allocator() override { return *allocator_; }
  Allocator& staging_allocator() override { return *staging_; }
  Stream& stream(StreamKind kind, int index) override;
  int num_streams(StreamKind kind) const override;
  bool can_copy_to(const Device& other) const override;
  std::string lost() const override;
  std::size_t host_read_limit() override;
  Ref<Buffer> allocate_host_readable(std::size_t bytes) override;
  bool can_trace() const override;
  void begin_trace() override;
  void end_trace(const std::function<void(const HardwareEvent&)>& report) override;

  const PluginHandle& handle() const { return *handle_; }

 private:
  static void retire(PluginDevice* device);
  PluginDevice(const PluginLibrary& library, int physical, const DeviceProperties& properties,
               const LogicalDeviceOptions& options, DeviceSpec spec);

  const std::string kernel_class_;
  DeviceProperties properties_;
  std::shared_ptr<PluginHandle> handle_;
  MemorySpace space_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Allocator> staging_;
  std::vector<std::unique_ptr<PluginStream>> streams_;  // compute…, copies in, copies out
};

}  // namespace tandem
