#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/parameters/commit_queue.h"
#include "tandem/distribute/internal/parameters/parameter_state.h"
#include "tandem/distribute/internal/parameters/update_log.h"
#include "tandem/distribute/internal/rpc/loss_estimate.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The variables of one home (a parameter server) on one task: the home itself, or a replica of it.
///
/// An update is named by its coordinator and a number, and is applied once, however often it is
/// pushed. Updates of finished numbers are forgotten. With `replicas_to_aggregate` above 0 as many
/// pushes wait for each other and are applied as one, their mean; one that was computed from
/// values before the last update is stale and not applied. With `max_staleness` above 0 pushes are
/// applied as they come unless more than so many updates came between.
///
/// With a folder each update is in its log before it is acknowledged, and the state is there again
/// after a crash. Without one a task that was started again has none, and says so.
///
/// **Replicas.** A view, an epoch with a chain of tasks, says who serves: the first of the chain.
/// Each task of it sends what it applies to the next one, and an update is acknowledged when the
/// last one has it. Only the chief makes views. One of a higher epoch replaces others: a task gets
/// the state of the one before it, and refuses what comes from earlier epochs, so that a task that
/// was only paused cannot acknowledge anything once others have gone on without it. The first task
/// acknowledges nothing in a view until the chief has confirmed it: it may be lost before the chief
/// knows that it has that view, and then tasks of the one before go on. A task that has read its
/// state from its folder takes no part until the next view.
///
/// Thread-safe; nothing blocks. Belongs to a shared_ptr, since calls to other tasks refer to it.
class ParameterStore : public std::enable_shared_from_this<ParameterStore> {
 public:
  struct Options {
    std::string task;         ///< this one
    std::string home = {};    ///< whose variables these are; empty: this task's
    std::string folder = {};  ///< empty: what is here is lost with the process
    /// The way to another task; null if there is none. Channels outlive their calls.
    std::function<Channel*(const std::string& task)> channel = {};
    UpdateLog::RunLater run_later = {};  ///< of its log
  };
  /// Throws DataLossError if what the folder holds is damaged.
  explicit ParameterStore(Options options);
  ~ParameterStore();
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Requests of the chief and of workers.
  void create(Bytes request, const ReplyDone& done);
  void pull(Bytes request, const ReplyDone& done);
  void push(Bytes request, const ReplyDone& done);
  /// Pushes with numbers below a limit wait for no others than these.
  void flush(Bytes request, const ReplyDone& done);
  /// Answers once this task serves, or has no state.
  void locate(const CallContext& context, const ReplyDone& done);

  /// From the chief, to the first task of the view's chain, and to one that was it in an earlier
  /// view and is replaced.
  void set_view(Bytes request, const ReplyDone& done);
  /// From the task before this one: the state, and a record to apply.
  void install(Bytes request, const ReplyDone& done);
  void forward(Bytes request, const ReplyDone& done);

  proto::ReplicaState describe() const;
  /// Ends the calls that wait for others.
  void close();

  struct Figures {
    std::int64_t num_updates = 0;
    std::size_t num_parameters = 0;
    std::size_t num_waiting = 0;
    std::uint64_t bytes = 0;
    bool durable = false;
  };
  Figures figures() const;

 private:
  // The way to the next task of the chain.
  struct Link {
    Channel* channel = nullptr;
    std::string task = {};
    std::uint64_t generation = 0;  // answers to earlier ones are not looked at
    bool ready = false;            // has the state
    bool broken = false;           // has not answered as it should: the chief has to decide
    std::shared_ptr<Cancellation> calls = {};
  };
  // How messages to another task fare, in whichever view.
  struct Peer {
    LossEstimate loss = {};
    int failures = 0;  // of the last call that was given up; 0 once one was answered
  };
  struct Caller {
    ReplyDone done;
    std::shared_ptr<Cancellation> gone;
  };
  struct EarlyRecord {  // one that came before its predecessor
    Bytes record;
    ReplyDone done;
  };

  bool serves() const TANDEM_REQUIRES(mutex_);
  void check_serves(const std::string& state_id) const TANDEM_REQUIRES(mutex_);
  void check_name(const std::string& variable) const TANDEM_REQUIRES(mutex_);
  void check_names(const proto::PushRequest& message) const TANDEM_REQUIRES(mutex_);
  bool is_stale(const proto::PushRequest& message) const TANDEM_REQUIRES(mutex_);
  /// Applies a group and answers its calls once that is everywhere.
  void apply_group(Pushes group, Actions& actions) TANDEM_REQUIRES(mutex_);
  /// Does so with what waits, if that is complete.
  void apply_waiting(Actions& actions) TANDEM_REQUIRES(mutex_);
  /// Whether the update with that number was applied or waits here.
  bool has_push(const std::string& coordinator, std::int64_t sequence) const
      TANDEM_REQUIRES(mutex_);
  bool group_is_complete() const TANDEM_REQUIRES(mutex_);
  /// Logs and forwards a record that was applied.
  void commit(const Bytes& record, CommitQueue::Done done, Actions& actions)
      TANDEM_REQUIRES(mutex_);
  /// `done` is called once the state is in the log and, unless it is forwarded already, on the next
  /// task.
  void take_snapshot(CommitQueue::Done done, bool forwarded, Actions& actions)
      TANDEM_REQUIRES(mutex_);
  void on_logged(std::uint64_t serial, const std::exception_ptr& error);

  bool is_newer(const proto::ReplicaView& view) const TANDEM_REQUIRES(mutex_) {
    return view.epoch > view_.epoch && view.epoch >= newest_epoch_;
  }
  void adopt(const proto::ReplicaView& view, Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_view_logged(std::int64_t epoch);
  /// No longer to the task after this one, until `install_next`.
  void unlink(Actions& actions) TANDEM_REQUIRES(mutex_);
  void install_next(Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_installed(std::uint64_t generation, std::int64_t position, const Status& status,
                    Bytes reply);
  struct NextCall;
  /// Calls the next task of the chain, and again where a message is lost, until so many were that
  /// the chief has to decide. What is called may be called twice.
  void call_next(const std::shared_ptr<NextCall>& call);
  /// Whether it is worth calling again.
  bool goes_on(const NextCall& call, const Status& status) TANDEM_EXCLUDES(mutex_);
  void send(const CommitQueue::Entry& entry, Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_forwarded(std::uint64_t generation, std::uint64_t serial, const Status& status,
                    Bytes reply);
  void resign(std::int64_t epoch, Actions& actions) TANDEM_REQUIRES(mutex_);
  /// Ends what waits here; the callers find who serves now.
  void drop_calls(Actions& actions) TANDEM_REQUIRES(mutex_);
  bool has_next() const TANDEM_REQUIRES(mutex_) { return !link_.task.empty(); }

  void restore(std::string_view bytes);
  void replay(std::string_view bytes);

  static constexpr std::uint64_t kMaxLogBytes = std::uint64_t{256} << 20;
  const Options options_;
  mutable Mutex mutex_;
  ParameterState state_ TANDEM_GUARDED_BY(mutex_);
  std::string term_ TANDEM_GUARDED_BY(mutex_);
  proto::ReplicaView view_ TANDEM_GUARDED_BY(mutex_);
  bool active_ TANDEM_GUARDED_BY(mutex_) = false;  // takes part in the view
  // The highest that this task has heard of: views of earlier ones are late messages.
  std::int64_t newest_epoch_ TANDEM_GUARDED_BY(mutex_) = 0;
  Link link_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, Peer> peers_ TANDEM_GUARDED_BY(mutex_);  // by task
  CommitQueue queue_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::int64_t, EarlyRecord> early_ TANDEM_GUARDED_BY(mutex_);  // by position
  std::vector<Caller> locating_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::int64_t> flush_below_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::int64_t>> unfinished_ TANDEM_GUARDED_BY(mutex_);
  // By coordinator and number: the order in which they are summed.
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<Push>> waiting_
      TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<UpdateLog> log_;  // null without a folder
};

}  // namespace tandem::distribute
