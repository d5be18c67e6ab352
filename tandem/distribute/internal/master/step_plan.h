#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/master/step_graph.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// How a session runs the steps of one signature: its own part, and the handles of the graphs that
/// other tasks have been given. Made once, used by any number of steps at a time.
class StepPlan : public std::enable_shared_from_this<StepPlan> {
 public:
  struct Remote {
    std::string task;
    Channel* channel = nullptr;
    std::string graph_def;  ///< until it is registered, and where partition graphs are asked for
    std::string handle;
  };
  using Ready = std::function<void(std::exception_ptr error)>;

  /// `channel_of` finds other tasks. Throws InternalError if there is a part without a task.
  StepPlan(StepSignature signature, StepGraph graph, const std::string& own_task,
           const std::function<Channel*(const std::string& task)>& channel_of);

  /// Registers the parts with their tasks, at the first call; calls `ready` when that is done,
  /// perhaps before it returns.
  void make_ready(const std::string& session, std::string_view config, Ready ready);

  const StepSignature& signature() const { return signature_; }
  const std::vector<DType>& feed_dtypes() const { return feed_dtypes_; }
  const std::vector<std::set<std::string>>& needed_feeds() const { return needed_feeds_; }
  /// The part of the master's own task; its function is null if it has none.
  const GraphPart& own() const { return own_; }
  const std::vector<Remote>& remotes() const { return remotes_; }

 private:
  enum class State { kNew, kRegistering, kReady, kFailed };
  void registered(std::size_t remote, const std::string& handle);
  void end(const std::exception_ptr& error);

  const StepSignature signature_;
  std::vector<DType> feed_dtypes_;
  std::vector<std::set<std::string>> needed_feeds_;
  GraphPart own_;
  std::vector<Remote> remotes_;
  Mutex mutex_;
  State state_ TANDEM_GUARDED_BY(mutex_) = State::kNew;
  std::size_t open_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  std::vector<Ready> waiting_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
