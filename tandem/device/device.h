#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/buffer.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/device/device_spec.h"

namespace tandem {

struct MemoryStats {
  std::size_t current = 0;  ///< bytes in use
  std::size_t peak = 0;     ///< the most bytes in use so far
  std::size_t limit = 0;    ///< 0: as much as the system gives
};

/// Hands out a device's memory. Thread-safe. Throws ResourceExhaustedError when there is no more.
class TANDEM_EXPORT Allocator {
 public:
  virtual ~Allocator();
  virtual Ref<Buffer> allocate(std::size_t bytes) = 0;
  virtual MemoryStats stats() const = 0;
};

/// A point in a stream's work. Thread-safe.
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
  double bytes = 0;
};

/// An in-order queue of work on a device. Thread-safe; work of one stream never overlaps itself.
class TANDEM_EXPORT Stream {
 public:
  virtual ~Stream();
  virtual void enqueue(Work work) = 0;
  /// An event that is done once everything enqueued so far has run.
  virtual Ref<Event> record() = 0;
  virtual void wait_for(Event& event) = 0;
  virtual void synchronize() = 0;
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
  virtual const std::string& kernel_class() const = 0;
  /// One line for people, such as the processor's name.
  virtual std::string description() const = 0;

  /// True if work runs on the calling thread and is finished when the call returns.
  virtual bool synchronous() const = 0;
  virtual Allocator& allocator() = 0;
  virtual Stream& stream(int index) = 0;
  virtual int num_streams() const = 0;
  /// Copies between this device's memory and the host; blocks until done.
  virtual void copy_to_host(const Buffer& from, std::size_t offset, void* to,
                            std::size_t bytes) = 0;
  virtual void copy_from_host(const void* from, Buffer& to, std::size_t offset,
                              std::size_t bytes) = 0;

 protected:
  explicit Device(DeviceSpec spec) : spec_(std::move(spec)), name_(spec_.to_string()) {}

 private:
  DeviceSpec spec_;
  std::string name_;
};

/// Makes the devices of one kind. One subfolder of tandem/device a backend.
class TANDEM_EXPORT Backend {
 public:
  virtual ~Backend();
  virtual std::string name() const = 0;
  virtual std::vector<std::shared_ptr<Device>> make_devices() = 0;
};

}  // namespace tandem
