#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/loss_estimate.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Calls the task that serves a home's variables: the home itself or, where there are replicas, the
/// one that has taken over. A task that is away is waited for, and where a replica takes over
/// the call goes there. Thread-safe; belongs to a shared_ptr.
class ParameterClient : public std::enable_shared_from_this<ParameterClient> {
 public:
  struct Replica {
    std::string task;
    Channel* channel;  ///< outlives this and its calls
  };
  using Time = std::chrono::steady_clock::time_point;
  using Now = std::function<Time()>;
  /// The home is the first of the tasks that may hold its variables. `now` is the clock that
  /// patience is measured by.
  explicit ParameterClient(std::vector<Replica> replicas,
                           Now now = &std::chrono::steady_clock::now);

  const std::string& home() const { return replicas_.front().task; }
  const std::vector<Replica>& replicas() const { return replicas_; }

  /// How long variables may be away; longer, where messages are so often lost that so long a
  /// silence may be chance.
  static constexpr auto kPatience = std::chrono::seconds(60);
  /// `request` has its home. The call ends with kInternal where no task has served the variables
  /// for `kPatience`; one that serves and takes its time is waited for.
  void call(const char* method, Bytes request, std::shared_ptr<const Cancellation> cancellation,
            ReplyDone done);

 private:
  struct Call;
  void attempt(const std::shared_ptr<Call>& call);
  void locate(const std::shared_ptr<Call>& call, const Status& failure);

  /// Whether the call may be tried again.
  bool has_time(const Call& call) const;
  /// A task has answered.
  void note_answer(Call& call);
  /// Whether a task that has failed to answer is tried again at once, without asking who serves.
  bool is_tried_again(Call& call) const;
  int patience() const;

  const std::vector<Replica> replicas_;
  const Now now_;
  std::atomic<std::size_t> serving_{0};  // that answered last
  mutable Mutex mutex_;
  LossEstimate loss_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
