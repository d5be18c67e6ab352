#pragma once

#include <exception>
#include <memory>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// A piece of work as an object that its owner keeps: what `Work` is by functions, without memory
/// of its own for each call.
class TANDEM_EXPORT StreamTask {
 public:
  /// As Work::run, on a thread of the stream.
  virtual void run() = 0;
  /// As Work::done: called exactly once, with null or why the task failed. The stream does not use
  /// the object any more.
  virtual void done(std::exception_ptr error) noexcept = 0;

 protected:
  StreamTask() = default;
  StreamTask(const StreamTask&) = delete;
  StreamTask& operator=(const StreamTask&) = delete;
  virtual ~StreamTask();

 private:
  friend class PluginStream;
  // The stream's, while it has the task:
  void* stream_ = nullptr;
  std::exception_ptr error_;
  std::shared_ptr<void> kept_;  // until the device has done what `run` launched
};

/// A stream that also runs tasks, in the order of its other work.
class TANDEM_EXPORT TaskStream {
 public:
  virtual ~TaskStream();
  /// Like Stream::enqueue; `flops` and `bytes` are those of Work. The task stays until it is done.
  virtual void enqueue_task(StreamTask& task, double flops, double bytes) = 0;
  /// True once the device is lost: Device::lost() says why.
  virtual bool is_lost() const = 0;
};

/// The first compute stream of a device, if it runs tasks; else null.
TANDEM_EXPORT TaskStream* task_stream(Device& device);

}  // namespace tandem
