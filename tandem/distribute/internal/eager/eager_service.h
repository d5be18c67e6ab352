#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/core/timer.h"
#include "tandem/distribute/internal/eager/eager_context.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/worker/worker.h"

namespace tandem::distribute {

/// TensorFlow's EagerService: remote ops, functions and variables of eager clients, TensorFlow's
/// and ours. Contexts end when they are closed, or when their clients have not called for as long
/// as they have said that they would.
class EagerService {
 public:
  /// What is given by reference must outlive this, and this the table's calls.
  EagerService(Worker& worker, Network& network);
  ~EagerService() { close(); }
  EagerService(const EagerService&) = delete;
  EagerService& operator=(const EagerService&) = delete;
  void add_to(MethodTable& methods);
  std::size_t num_contexts() const;
  /// Ends all contexts.
  void close();

 private:
  struct Entry {
    std::shared_ptr<EagerContext> context;
    Timer expiry;
  };
  void create_context(Bytes request, const CallContext& caller, const ReplyDone& done);
  void update_context(Bytes request, const CallContext& caller, const ReplyDone& done);
  void enqueue(Bytes request, const CallContext& caller, const ReplyDone& done);
  void wait_queue_done(Bytes request, const CallContext& caller, const ReplyDone& done);
  void run_component_function(Bytes request, const CallContext& caller, const ReplyDone& done);
  void keep_alive(Bytes request, const CallContext& caller, const ReplyDone& done);
  void close_context(Bytes request, const CallContext& caller, const ReplyDone& done);

  std::shared_ptr<const Peers> peers_of(const proto::EagerServerDef& server) const;
  /// Throws AbortedError with TensorFlow's text.
  std::shared_ptr<EagerContext> find(std::uint64_t id) const;
  std::shared_ptr<EagerContext> remove(std::uint64_t id);
  void expire_after(std::uint64_t id, std::chrono::nanoseconds time) TANDEM_REQUIRES(mutex_);
  void expire(std::uint64_t id);

  Worker& worker_;
  Network& network_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, Entry> contexts_ TANDEM_GUARDED_BY(mutex_);
  // What timers call back, which may be when the service is gone.
  struct Expiry {
    Mutex mutex;
    EagerService* service TANDEM_GUARDED_BY(mutex) = nullptr;
  };
  const std::shared_ptr<Expiry> expiry_ = std::make_shared<Expiry>();
};

}  // namespace tandem::distribute
