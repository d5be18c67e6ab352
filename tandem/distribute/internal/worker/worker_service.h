#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/worker/worker.h"

namespace tandem::distribute {

/// TensorFlow's WorkerService: what masters and other workers ask of a task.
class WorkerService {
 public:
  /// `worker` must outlive this, and this the table's calls.
  explicit WorkerService(Worker& worker) : worker_(worker) {}
  void add_to(MethodTable& methods);

 private:
  struct Partial;
  void get_status(Bytes request, const ReplyDone& done);
  void create_session(Bytes request, const ReplyDone& done);
  void delete_session(Bytes request, const ReplyDone& done);
  void register_graph(Bytes request, const ReplyDone& done);
  void deregister_graph(Bytes request, const ReplyDone& done);
  void run_graph(Bytes request, const CallContext& context, ReplyDone done);
  void recv_tensor(Bytes request, const CallContext& context, ReplyDone done);
  void clean_up_graph(Bytes request, const ReplyDone& done);
  void clean_up_all(Bytes request, const ReplyDone& done);
  void logging(Bytes request, const ReplyDone& done);
  void step_sequence(Bytes request, const ReplyDone& done);

  std::shared_ptr<WorkerSession> session(const std::string& handle, bool created) const;
  void check_incarnation(const RendezvousKey& key) const;

  Worker& worker_;
  SeenRequests run_requests_;
  SeenRequests receive_requests_;
  Mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Partial>> partial_runs_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::int64_t, std::int64_t> sequences_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
