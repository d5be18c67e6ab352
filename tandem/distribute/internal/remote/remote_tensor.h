#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/remote/remote_task.h"
#include "tandem/runtime/remote_calls.h"

namespace tandem::distribute {

/// How a call on a task has gone, as far as is known. Thread-safe.
class RemoteResult {
 public:
  void set(std::exception_ptr error, std::vector<proto::TensorShape> shapes);
  /// Waits for the answer; null if it went well.
  std::exception_ptr wait();
  /// Whether the answer is there, and is a failure.
  bool has_failed();
  /// After `wait`: of each output.
  const std::vector<proto::TensorShape>& shapes() const { return shapes_; }

 private:
  Mutex mutex_;
  std::condition_variable answered_;
  bool done_ TANDEM_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  std::vector<proto::TensorShape> shapes_;  // not changed once `done_`
};

/// One output of a call on a task. The task forgets it with the last tensor that refers to it.
class RemoteTensor final : public RemoteValue {
 public:
  /// `place` is the tensor's memory, to which the value is fetched.
  RemoteTensor(std::shared_ptr<RemoteTask> task, std::string device, std::int64_t operation,
               int output, Array place, std::shared_ptr<RemoteResult> result)
      : task_(std::move(task)),
        device_(std::move(device)),
        operation_(operation),
        output_(output),
        place_(std::move(place)),
        result_(std::move(result)) {}
  ~RemoteTensor() override;

  const std::string& device() const override { return device_; }
  const std::shared_ptr<RemoteTask>& task() const { return task_; }
  RemoteResult& result() const { return *result_; }
  /// As operations name it.
  proto::RemoteTensorHandle handle() const;
  /// The item that sends the value to another device.
  Bytes send_item(const std::string& destination, const std::string& tensor_name) const;

  bool done() const override { return fetched_.load(std::memory_order_acquire); }
  void wait() override;

 private:
  void fetch();

  const std::shared_ptr<RemoteTask> task_;
  const std::string device_;
  const std::int64_t operation_;
  const int output_;
  Array place_;
  const std::shared_ptr<RemoteResult> result_;
  Mutex mutex_;  // of those that fetch
  std::atomic<bool> fetched_{false};
};

/// A name for a value on its way, which no other has.
std::string new_tensor_name();
/// An attribute of a send or receive.
std::string text_attr(const char* name, const std::string& value);
std::string number_attr(const char* name, std::int64_t value);
std::string type_attr(const char* name, DType value);

}  // namespace tandem::distribute
