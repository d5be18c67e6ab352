#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct DeviceSet;
struct DeviceSpec;
struct OpDef;

/// The value of a tensor that is on another task: `wait` fetches it into the tensor's own memory.
class TANDEM_EXPORT RemoteValue : public Event {
 public:
  /// "/job:worker/replica:0/task:1/device:CPU:0".
  virtual const std::string& device() const = 0;

 protected:
  ~RemoteValue() override;
};

/// The value if the tensor is on another task, else null.
TANDEM_EXPORT RemoteValue* remote_value_of(const Tensor& tensor);

/// Runs eager calls on the devices of other tasks. What connects this process to a cluster sets it
/// (tandem/distribute/connect.h). Thread-safe.
class TANDEM_EXPORT RemoteCalls {
 public:
  virtual ~RemoteCalls();
  /// Whether it has the devices of that task.
  virtual bool has_task(const DeviceSpec& device) const = 0;
  /// Adds the devices of its tasks to those of this process, and what joins their machines, as
  /// planning sees them.
  virtual void add_devices(DeviceSet& devices) const = 0;
  /// Both return before the call has run; `device` is a full name.
  virtual std::vector<Tensor> call(const std::string& device, const OpDef& op,
                                   std::span<const Tensor> inputs, const AttrMap& attrs) = 0;
  virtual std::vector<Tensor> call(const std::string& device, const FunctionRef& function,
                                   std::span<const Tensor> args) = 0;

  /// Holds for the whole process; null ends it.
  static void set(std::shared_ptr<RemoteCalls> calls);
  static std::shared_ptr<RemoteCalls> get();
  static bool active() { return active_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<bool> active_;
};

/// Where a call runs if not in this process. An op runs on the task of a resource that it is given,
/// else where the thread's DeviceScope asks for; a function the other way round.
struct RemoteTarget {
  std::shared_ptr<RemoteCalls> calls;
  std::string device;
};
enum class CallKind : std::uint8_t { kOp, kFunction };
std::optional<RemoteTarget> remote_target(std::span<const Tensor> inputs, CallKind kind);

}  // namespace tandem
