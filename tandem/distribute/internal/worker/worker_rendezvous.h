#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/graph/rendezvous.h"

namespace tandem::distribute {

/// Where the parts of a step that run in this task meet, and meet those of other tasks: what comes
/// from another task's device is asked for there (RecvTensor), everything else stays here.
class WorkerRendezvous final : public Rendezvous {
 public:
  /// `task`: this one's full name. `peers` must outlive this.
  WorkerRendezvous(std::int64_t step, std::string task, const Peers& peers,
                   std::shared_ptr<Cancellation> cancellation);

  void send(const RendezvousKey& key, Array value, bool is_dead) override;
  void recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                  RecvDone done) override;
  /// Ends receives from other tasks, too, and cancels what waits elsewhere in the step.
  void start_abort(std::exception_ptr error) override;

  /// Values may come from these tasks too: an eager context's, whose client is a task of its own.
  void add_peers(std::shared_ptr<const Peers> peers);
  /// What other tasks and clients take out and put in.
  LocalRendezvous& local() { return *local_; }

 private:
  void recv_remote(Channel& channel, const RendezvousKey& key, RecvDone done);
  Channel* channel_to(std::string_view task);

  const std::int64_t step_;
  const std::string task_;
  const Peers& peers_;
  const std::shared_ptr<Cancellation> cancellation_;
  const Ref<LocalRendezvous> local_;
  Mutex mutex_;
  // Those that were added, each kept as long as there may be calls to it.
  std::vector<std::shared_ptr<const Peers>> more_peers_ TANDEM_GUARDED_BY(mutex_);
};

/// Appends to the status of a call that failed in a peer what TensorFlow appends, by which a master
/// knows that the failure began elsewhere.
std::exception_ptr error_of_peer(const Status& status, std::string_view task, const char* method);
/// True if the message is of a failure that began in another task.
bool began_elsewhere(std::string_view message);

}  // namespace tandem::distribute
