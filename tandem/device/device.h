#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/buffer.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/device/device_spec.h"

namespace tandem {

class Reclaimables;  // tandem/device/reclaimable.h
struct MemorySpace;  // tandem/core/buffer.h

// What a backend must keep to is checked by tandem/device/conformance, case by case;
// docs/adding-a-device.md shows how to write one.

struct MemoryStats {
  std::size_t current = 0;       ///< bytes in use
  std::size_t peak = 0;          ///< the most bytes in use so far
  std::size_t limit = 0;         ///< 0: as much as the system gives
  std::size_t reserved = 0;      ///< bytes taken from the device, used or not
  std::size_t largest_free = 0;  ///< the largest block that could be had without more memory
};

/// Hands out a device's memory. Thread-safe.
class TANDEM_EXPORT Allocator {
 public:
  virtual ~Allocator();
  /// A block of exactly so many bytes, aligned to 64; it goes back when its last reference goes,
  /// from any thread. No bytes are a buffer like any other, of size 0. Throws
  /// ResourceExhaustedError when there is no more; for a device with memory of its own it names the
  /// request, the limit, the largest holders, the fragmentation and what would help.
  virtual Ref<Buffer> allocate(std::size_t bytes) = 0;
  virtual MemoryStats stats() const = 0;
  /// What a block of so many bytes adds to `stats().current`.
  virtual std::size_t counted_bytes(std::size_t bytes) const { return bytes; }
  /// The peak becomes what is in use now.
  virtual void reset_peak() {}
  /// Who is asked for memory before an allocation fails; null where there is no one to ask.
  virtual Reclaimables* reclaimables() { return nullptr; }
};

/// Memory allocated by this thread in the block is held by `holder` (a node's name, say) in reports
/// of memory that ran out. The text must outlive the block.
class TANDEM_EXPORT AllocationScope {
 public:
  explicit AllocationScope(std::string_view holder);
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;
  static std::string_view current();

 private:
  std::string_view saved_;
};

/// A point in a stream's work. Thread-safe; may outlive the stream.
class TANDEM_EXPORT Event : public RefCounted {
 public:
  virtual bool done() const = 0;
  /// Blocks until done; throws the error of the work if it failed.
  virtual void wait() = 0;
};

/// What a stream runs: an opaque callable, and what the runtime estimates it costs.
struct Work {
  std::function<void()> run;
  double flops = 0;
  double bytes = 0;  ///< of device memory read and written
  /// If given, called exactly once when the work is over, with null or why it failed (what `run`
  /// threw; UnavailableError if the device was lost before or meanwhile). Called on a thread of the
  /// backend's, perhaps while later work runs already (for hardware queues one that waits for them,
  /// never a callback of the driver's), or in `enqueue` where the device is synchronous; it may
  /// enqueue further work but must not block.
  std::function<void(std::exception_ptr)> done;
  /// Takes no time of the device: work on host memory in its order.
  bool on_host = false;
};

/// A transfer to, from, or between devices. A buffer of the host has no space. The copy keeps both
/// buffers until it is over; offsets and sizes are bytes, of any alignment, and lie within the
/// buffers. No bytes are no work, but `done` is called.
struct Copy {
  Ref<Buffer> from;
  std::size_t from_offset = 0;
  Ref<Buffer> to;
  std::size_t to_offset = 0;
  std::size_t bytes = 0;
  std::function<void(std::exception_ptr)> done;  ///< as Work::done
};

/// An in-order queue of work on a device. Thread-safe; work of one stream never overlaps itself.
/// After a failure later work still runs, unless the device is lost.
class TANDEM_EXPORT Stream {
 public:
  virtual ~Stream();
  /// Throws UnavailableError, and calls nothing, if the device is already lost.
  virtual void enqueue(Work work) = 0;
  /// Enqueues a copy. One side must be in the device's memory; the other may be the host's, or that
  /// of a device for which `Device::can_copy_to` is true (it is for the same backend's alone).
  virtual void enqueue(Copy copy) = 0;
  /// An event that is done once everything enqueued so far has run.
  virtual Ref<Event> record() = 0;
  /// Later work of this stream begins after the event, without blocking the caller. The event may
  /// be of any stream, device and backend; of one that the hardware does not know the backend asks
  /// `done` on a thread of its own. An event that failed is over too: the error is with what
  /// recorded it.
  virtual void wait_for(Ref<Event> event) = 0;
  /// Blocks until all work is over; throws the first failure that was not yet reported (by `done`,
  /// an event or here).
  virtual void synchronize() = 0;
};

enum class StreamKind : std::uint8_t {
  kCompute,
  kCopyIn,   ///< from the host or another device
  kCopyOut,  ///< to the host
};

/// What is known of a device for planning and for people. Rates are 0 where unknown.
struct DeviceProperties {
  std::string description;       ///< one line, such as the processor's name
  std::size_t memory_bytes = 0;  ///< that this device may use; 0: the machine's
  double flops = 0;              ///< float operations a second
  double memory_bandwidth = 0;   ///< bytes a second
  double link_bandwidth = 0;     ///< to and from the host, bytes a second
  double link_latency = 0;       ///< seconds a copy
  double launch_overhead = 0;    ///< seconds between two pieces of work
  int compute_streams = 1;
  bool emulated = false;
  bool computes = true;                        ///< false: float results are zero, only time passes
  std::vector<std::string> without;            ///< ops for which it has no kernel
  std::map<std::string, std::string> details;  ///< get_device_details: "device_name", …
};

/// One place where work can run. Lives as long as its Runtime or any tensor on it.
///
/// Apart from its type name a device has a kernel class ("cpu", "cuda"), by which kernels are
/// found: an emulated GPU has type "GPU" and kernel class "cpu".
class TANDEM_EXPORT Device {
 public:
  virtual ~Device();

  const DeviceSpec& spec() const { return spec_; }
  /// Full canonical name, "/job:localhost/replica:0/task:0/device:CPU:0".
  const std::string& name() const { return name_; }
  const std::string& type() const { return *spec_.type; }
  /// Random, not 0, and of this object alone: another device of the same name, such as that of a
  /// process which was started again, has another one.
  std::uint64_t incarnation() const { return incarnation_; }
  virtual const std::string& kernel_class() const = 0;
  virtual const DeviceProperties& properties() const = 0;

  /// True if work runs on the calling thread and is finished when the call returns.
  virtual bool synchronous() const = 0;
  /// Null if the device computes in the host's memory.
  virtual const MemorySpace* memory_space() const { return nullptr; }
  virtual Allocator& allocator() = 0;
  /// Host memory that copies to and from this device are fastest with (pinned where there is such).
  virtual Allocator& staging_allocator() { return allocator(); }
  /// The same stream for the same index each time. Throws InvalidArgumentError unless the index is
  /// in [0, num_streams(kind)).
  virtual Stream& stream(StreamKind kind, int index = 0) = 0;
  /// At least one of each kind.
  virtual int num_streams(StreamKind kind) const = 0;
  /// True if `enqueue(Copy)` takes buffers of `other` too: copies then go there without passing
  /// through the host. What is false for both goes through staging memory.
  virtual bool can_copy_to(const Device& other) const = 0;
  /// Empty while the device works; once it is lost, why.
  virtual std::string lost() const { return {}; }

  /// Copies between this device's memory and the host; blocks until done.
  void copy_to_host(const Ref<Buffer>& from, std::size_t offset, void* to, std::size_t bytes);
  void copy_from_host(const void* from, const Ref<Buffer>& to, std::size_t offset,
                      std::size_t bytes);

 protected:
  explicit Device(DeviceSpec spec);

 private:
  DeviceSpec spec_;
  std::string name_;
  std::uint64_t incarnation_;
};

/// A piece of hardware (or an emulation of it), of which one or several logical devices are made.
struct PhysicalDevice {
  std::string name;         ///< "/physical_device:GPU:0"
  std::string device_type;  ///< "GPU", in upper case
  bool operator==(const PhysicalDevice&) const = default;
};

/// How a logical device is cut from a physical one.
struct LogicalDeviceOptions {
  std::optional<std::size_t> memory_limit = std::nullopt;  ///< bytes; nothing: all that is there
  bool memory_growth = false;  ///< take memory as it is needed instead of all at first use
};

/// Makes the devices of one kind. One subfolder of tandem/device a backend.
class TANDEM_EXPORT Backend {
 public:
  virtual ~Backend();
  virtual std::string name() const = 0;
  /// In the order of their indices within each type. May be empty.
  virtual std::vector<PhysicalDevice> physical_devices() const = 0;
  virtual DeviceProperties properties(const PhysicalDevice& physical) const = 0;
  /// Several logical devices of one physical share its memory and links.
  virtual std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                              const LogicalDeviceOptions& options,
                                              DeviceSpec spec) = 0;
  /// Why there are no devices, in one line ("no CUDA driver found"); empty if there are.
  virtual std::string unavailable() const { return {}; }
};

}  // namespace tandem
