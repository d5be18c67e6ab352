#pragma once

#include <functional>

namespace tandem {

/// True while the calling thread is inside a callback of a device's own thread, which therefore
/// must not wait for that device.
bool on_device_thread();

/// Marks the calling thread so for a block.
class DeviceThreadScope {
 public:
  DeviceThreadScope();
  ~DeviceThreadScope();
  DeviceThreadScope(const DeviceThreadScope&) = delete;
  DeviceThreadScope& operator=(const DeviceThreadScope&) = delete;

 private:
  bool saved_;
};

/// Runs `task` soon, on a thread where it may wait for devices: at once on the caller's if that is
/// no device's. The last to let go of a device may be its own thread, which can't end itself. What
/// is left at the end of the program is done before it ends.
void run_off_device_threads(std::function<void()> task);

}  // namespace tandem
