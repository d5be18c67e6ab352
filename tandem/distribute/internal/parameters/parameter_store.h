#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/parameters/commit_queue.h"
#include "tandem/distribute/internal/parameters/parameter_state.h"
#include "tandem/distribute/internal/parameters/state_parts.h"
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
/// **Moving the state.** It goes to the log, and to the next task, in parts, among the updates that
/// are applied meanwhile (state_parts.h). A task that has the state up to an update, and needs only
/// those behind it, gets only these. One that gets a whole state gives up its own when the new one
/// begins, and has none until that is whole; its folder keeps the old one so long.
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
    StateSizes sizes = {};
  };
  /// Throws DataLossError if what the folder holds is damaged.
  explicit ParameterStore(Options options);
  ~ParameterStore();
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Requests of the chief and of workers.
  void create(Bytes request, const ReplyDone& done);
  void upload(Bytes request, const ReplyDone& done);
  void pull(Bytes request, const ReplyDone& done);
  void push(Bytes request, const ReplyDone& done);
  /// Pushes with numbers below a limit wait for no others than these.
  void flush(Bytes request, const ReplyDone& done);
  /// Answers once this task serves, or has no state.
  void locate(const CallContext& context, const ReplyDone& done);

  /// From the chief, to the first task of the view's chain, and to one that was it in an earlier
  /// view and is replaced.
  void set_view(Bytes request, const ReplyDone& done);
  /// From the task before this one: that there will be a state, and what leads to it.
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
  // The way to the next task of the chain, which gets the state and then what is applied to it.
  struct Link {
    Channel* channel = nullptr;
    std::string task = {};
    std::uint64_t generation = 0;  // answers to earlier ones are not looked at
    bool begun = false;            // has said which state it has
    bool ready = false;            // has the state of here
    bool broken = false;           // has not answered as it should: the chief has to decide
    std::shared_ptr<Cancellation> calls = {};
    std::int64_t order = 0;                    // of the last message
    std::optional<PartSender> parts = {};      // of the state that are not sent
    int open_parts = 0;                        // that are not answered
    std::int64_t completed_at = 0;             // the position of the state that it was sent
    std::vector<std::uint64_t> received = {};  // entries that it has, before it is ready
  };
  // What the task before this one sends.
  struct Item {
    Bytes request;
    proto::ForwardRequest message;
    ReplyDone done;
  };
  struct Incoming {
    proto::ReplicaView view;
    std::int64_t next = 1;               // the order of the item to be taken
    std::map<std::int64_t, Item> early;  // that came before their predecessors
    bool keeps = false;                  // the state that is here is the right one
    std::unique_ptr<StateReceiver> state = {};
    bool complete = false;
  };
  // A state on its way to the log.
  struct Checkpoint {
    std::uint64_t number;
    std::uint64_t serial;  // of the entry that waits for it; 0: none
    PartSender parts;
    int open_parts = 0;
  };
  // Variables that the chief is sending.
  struct Upload {
    std::string name;
    Parameters parameters;
    PartReceiver parts;
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
  /// Logs and forwards an update that was applied, and led from a state of the epoch.
  void commit(const Bytes& record, std::int64_t position, std::int64_t epoch_before,
              CommitQueue::Done done, Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_logged(std::uint64_t serial, const std::exception_ptr& error);
  /// Throws unless the variables here are these.
  void check_same(const std::vector<proto::ParameterHead>& heads) const TANDEM_REQUIRES(mutex_);
  void begin_upload(const proto::CreateParametersRequest& request,
                    const std::vector<proto::ParameterHead>& heads) TANDEM_EXCLUDES(mutex_);
  Parameters take_upload(const std::string& name) TANDEM_REQUIRES(mutex_);

  /// Reads the state that the folder has.
  void recover();
  /// Writes the state to the log, in parts; the entry is logged when it is all there.
  void begin_checkpoint(std::uint64_t serial) TANDEM_REQUIRES(mutex_);
  void continue_checkpoint() TANDEM_REQUIRES(mutex_);
  void on_part_logged(std::uint64_t checkpoint, const std::exception_ptr& error);
  /// Begins one if the log is long.
  void shorten_log() TANDEM_REQUIRES(mutex_);

  bool is_newer(const proto::ReplicaView& view) const TANDEM_REQUIRES(mutex_) {
    return view.epoch > view_.epoch && view.epoch >= newest_epoch_;
  }
  void adopt(const proto::ReplicaView& view, Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_view_logged(std::int64_t epoch);
  /// No longer to the task after this one, until `install_next`.
  void unlink(Actions& actions) TANDEM_REQUIRES(mutex_);
  void install_next(Actions& actions) TANDEM_REQUIRES(mutex_);
  /// What the next task answers; false if it is not accepted, or not looked at.
  bool is_accepted(std::uint64_t generation, const proto::ReplicaResponse& response,
                   Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_begun(std::uint64_t generation, const Status& status, Bytes reply);
  void on_item(std::uint64_t generation, const Status& status, Bytes reply);
  void send_parts(Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_part(std::uint64_t generation, const Status& status, Bytes reply);
  void send_complete(Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_complete(std::uint64_t generation, const Status& status, Bytes reply);
  struct NextCall;
  using OnReply = std::function<void(ParameterStore& store, std::uint64_t generation,
                                     const Status& status, Bytes reply)>;
  void send_item(proto::ForwardRequest message, const Bytes& record, OnReply on_reply,
                 Actions& actions) TANDEM_REQUIRES(mutex_);
  /// Calls the next task of the chain, and again where a message is lost, until so many were that
  /// the chief has to decide. What is called may be called twice.
  void call_next(const std::shared_ptr<NextCall>& call);
  /// Whether it is worth calling again.
  bool goes_on(const NextCall& call, const Status& status) TANDEM_EXCLUDES(mutex_);
  void send(const CommitQueue::Entry& entry, Actions& actions) TANDEM_REQUIRES(mutex_);
  void on_forwarded(std::uint64_t generation, std::uint64_t serial, const Status& status,
                    Bytes reply);
  void resign(std::int64_t epoch, Actions& actions) TANDEM_REQUIRES(mutex_);
  /// The highest epoch that this task knows of.
  std::int64_t known_epoch() const TANDEM_REQUIRES(mutex_) {
    return std::max(view_.epoch, newest_epoch_);
  }
  void take_item(const Item& item, Actions& actions) TANDEM_REQUIRES(mutex_);
  void take_record(const Item& item, Actions& actions) TANDEM_REQUIRES(mutex_);
  /// The state is whole, and this task a replica.
  void become_replica(CommitQueue::Done done, Actions& actions) TANDEM_REQUIRES(mutex_);
  void drop_incoming(Actions& actions) TANDEM_REQUIRES(mutex_);
  /// Ends what waits here; the callers find who serves now.
  void drop_calls(Actions& actions) TANDEM_REQUIRES(mutex_);
  bool has_next() const TANDEM_REQUIRES(mutex_) { return !link_.task.empty(); }

  // So that one is written or sent while the next one is copied.
  static constexpr int kMaxOpenParts = 2;
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
  std::optional<Incoming> incoming_ TANDEM_GUARDED_BY(mutex_);
  std::optional<Checkpoint> checkpoint_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t num_checkpoints_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::optional<Upload> upload_ TANDEM_GUARDED_BY(mutex_);
  std::vector<Caller> locating_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::int64_t> flush_below_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::int64_t>> unfinished_ TANDEM_GUARDED_BY(mutex_);
  // By coordinator and number: the order in which they are summed.
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<Push>> waiting_
      TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<UpdateLog> log_;  // null without a folder
};

}  // namespace tandem::distribute
