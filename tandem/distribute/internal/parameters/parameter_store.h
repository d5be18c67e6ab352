#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/parameters/server_update.h"
#include "tandem/distribute/internal/parameters/update_log.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The parameters that a task holds for one training, and the optimizer that changes them.
///
/// An update is named by its coordinator and a number, and is applied once, however often it is
/// pushed. Updates of finished numbers are forgotten. With `replicas_to_aggregate` above 0 as many
/// pushes wait for each other and are applied as one, their mean; one that was computed from
/// values before the last update is stale and not applied.
///
/// With a folder each update is in its log before it is acknowledged, and the state is there again
/// after a crash. Without one a task that was started again has none, and says so. Thread-safe;
/// nothing blocks.
class ParameterStore {
 public:
  /// `task` is for messages. Throws DataLossError if what the folder holds is damaged.
  ParameterStore(std::string task, const std::string& folder);

  void create(Bytes request, const ReplyDone& done);
  void pull(Bytes request, const ReplyDone& done);
  void push(Bytes request, const ReplyDone& done);
  /// Pushes with numbers below a limit wait for no others than these.
  void flush(Bytes request, const ReplyDone& done);

  /// Ends the calls that wait for others.
  void close();
  /// Returns when every update applied so far is in the log and answered. Blocks.
  void wait_until_durable();

  struct Figures {
    std::string state_id;
    std::int64_t num_updates = 0;
    std::size_t num_parameters = 0;
    std::size_t num_waiting = 0;
    std::uint64_t bytes = 0;
    bool durable = false;
  };
  Figures figures() const;

 private:
  // A push that has not been applied; its message's views are into `request`.
  struct Push {
    Bytes request;
    proto::PushRequest message;
    ReplyDone done;
  };
  struct Applied {
    std::int64_t below = 0;  // all of these
    std::set<std::int64_t> above;
    bool contains(std::int64_t number) const { return number < below || above.contains(number); }
  };
  using Pushes = std::vector<std::shared_ptr<Push>>;

  void check_state(const std::string& state_id) const TANDEM_REQUIRES(mutex_);
  void check_gradients(const proto::PushRequest& message) const TANDEM_REQUIRES(mutex_);
  void apply(const Pushes& group) TANDEM_REQUIRES(mutex_);
  /// Applies a group and answers its calls once that is durable. Without a log the calls, to be
  /// made without the lock, are what is returned.
  std::function<void()> apply_and_log(Pushes group) TANDEM_REQUIRES(mutex_);
  /// Does so with what waits, if that is complete.
  std::function<void()> apply_waiting() TANDEM_REQUIRES(mutex_);
  bool group_is_complete() const TANDEM_REQUIRES(mutex_);
  void take_snapshot(UpdateLog::Durable durable) TANDEM_REQUIRES(mutex_);
  void restore(std::string_view bytes);
  void replay(std::string_view bytes);

  static constexpr std::uint64_t kMaxLogBytes = std::uint64_t{256} << 20;
  const std::string task_;
  mutable Mutex mutex_;
  std::string state_id_ TANDEM_GUARDED_BY(mutex_);
  proto::OptimizerSpec optimizer_ TANDEM_GUARDED_BY(mutex_);
  int replicas_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::int64_t version_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Parameter> parameters_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, Applied> applied_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::int64_t> flush_below_ TANDEM_GUARDED_BY(mutex_);
  // By coordinator and number: the order in which they are summed.
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<Push>> waiting_
      TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<UpdateLog> log_;  // null without a folder
};

}  // namespace tandem::distribute
