#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/core/timer.h"
#include "tandem/distribute/internal/remote/call_templates.h"
#include "tandem/distribute/internal/remote/remote_tensor.h"
#include "tandem/runtime/remote_calls.h"

namespace tandem::distribute {

/// Turns calls into items of the tasks' queues.
class EagerClient final : public RemoteCalls, public std::enable_shared_from_this<EagerClient> {
 public:
  /// `addresses`: of the tasks, by name.
  EagerClient(std::vector<std::shared_ptr<RemoteTask>> tasks,
              std::map<std::string, std::string> addresses);

  bool has_task(const DeviceSpec& device) const override;
  void add_devices(DeviceSet& devices) const override;
  std::vector<Tensor> call(const std::string& device, const OpDef& op,
                           std::span<const Tensor> inputs, const AttrMap& attrs) override;
  std::vector<Tensor> call(const std::string& device, const FunctionRef& function,
                           std::span<const Tensor> args) override;
  const std::vector<std::shared_ptr<RemoteTask>>& tasks() const { return tasks_; }

  /// From now on the tasks hear from this client so often, though it may have nothing to run.
  void keep_alive(std::chrono::milliseconds every);
  /// Ends that, and the contexts of the tasks that answer. Later calls fail.
  void close();

 private:
  std::shared_ptr<RemoteTask> task_of(const std::string& device) const;
  std::int64_t new_operation() { return next_operation_.fetch_add(1); }
  /// The input as the task has it, which is given it first where it has not.
  proto::RemoteTensorHandle give(RemoteTask& task, const std::string& device, const Tensor& input,
                                 bool to_function, std::vector<proto::RemoteTensorHandle>& given);
  std::vector<Tensor> enqueue(const std::shared_ptr<RemoteTask>& task, const std::string& device,
                              const CallTemplate& call, std::span<const Tensor> inputs,
                              bool is_function);

  const std::vector<std::shared_ptr<RemoteTask>> tasks_;
  const std::map<std::string, std::string> addresses_;
  CallTemplates templates_;
  std::atomic<std::int64_t> next_operation_{1};
  Mutex mutex_;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  Timer timer_ TANDEM_GUARDED_BY(mutex_);
  // By task and name.
  std::set<std::pair<const RemoteTask*, std::string>> registered_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
