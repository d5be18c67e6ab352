#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/distribute/internal/eager/eager_service.h"
#include "tandem/distribute/internal/master/master.h"
#include "tandem/distribute/internal/master/master_service.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/worker/worker_service.h"

namespace tandem::distribute {

/// All that masters and workers answer.
inline constexpr const char* kMethods[] = {"MasterService/CreateSession",
                                           "MasterService/ExtendSession",
                                           "MasterService/PartialRunSetup",
                                           "MasterService/RunStep",
                                           "MasterService/CloseSession",
                                           "MasterService/ListDevices",
                                           "MasterService/Reset",
                                           "MasterService/MakeCallable",
                                           "MasterService/RunCallable",
                                           "MasterService/ReleaseCallable",
                                           "WorkerService/GetStatus",
                                           "WorkerService/CreateWorkerSession",
                                           "WorkerService/DeleteWorkerSession",
                                           "WorkerService/RegisterGraph",
                                           "WorkerService/DeregisterGraph",
                                           "WorkerService/RunGraph",
                                           "WorkerService/CleanupGraph",
                                           "WorkerService/CleanupAll",
                                           "WorkerService/RecvTensor",
                                           "WorkerService/MarkRecvFinished",
                                           "WorkerService/Logging",
                                           "WorkerService/Tracing",
                                           "WorkerService/GetStepSequence",
                                           "eager.EagerService/CreateContext",
                                           "eager.EagerService/UpdateContext",
                                           "eager.EagerService/Enqueue",
                                           "eager.EagerService/StreamingEnqueue",
                                           "eager.EagerService/WaitQueueDone",
                                           "eager.EagerService/RunComponentFunction",
                                           "eager.EagerService/KeepAlive",
                                           "eager.EagerService/CloseContext"};

/// Calls within one process: a task's table is called on the caller's thread.
class InProcessNetwork final : public Network {
 public:
  std::shared_ptr<Channel> channel(const std::string& address) override {
    std::shared_ptr<Route>& route = routes_[address];
    if (!route) route = std::make_shared<Route>();
    return route;
  }
  void serve(const std::string& address, Service* service) {
    static_cast<void>(channel(address));
    routes_[address]->service = service;
  }

 private:
  struct Route final : Channel {
    void call(const char* method, Bytes request, const CallOptions& options,
              ReplyDone done) override {
      Service* to = service.load();
      if (!to) return done({Code::kUnavailable, "failed to connect to all addresses"}, {});
      CallContext context;
      // What cancels the call here cancels it there.
      auto callback = std::make_shared<CancellationCallback>(
          options.cancellation, [there = context.cancellation] { there->cancel(); });
      if (options.cancellation && !callback->registered()) context.cancellation->cancel();
      to->call(method, std::move(request), context,
               [callback, done = std::move(done)](Status status, Bytes reply) {
                 callback->reset();
                 done(std::move(status), std::move(reply));
               });
    }
    std::atomic<Service*> service{nullptr};
  };
  std::map<std::string, std::shared_ptr<Route>> routes_;
};

/// Tasks of one process, each with a runtime, a worker and a master of its own.
class InProcessCluster {
 public:
  explicit InProcessCluster(const std::string& text) : cluster_(ClusterSpec::parse(text)) {
    for (const auto& [job, tasks] : cluster_.jobs()) {
      for (const auto& [number, address] : tasks)
        tasks_.emplace(task_name(job, number), std::make_unique<Task>(*this, job, number));
    }
  }
  ~InProcessCluster() {
    for (auto& [name, task] : tasks_) {
      for (const auto& session : task->master.sessions()) session->close();
    }
  }

  struct Task {
    Task(InProcessCluster& all, const std::string& job, int number)
        : runtime({.inter_op_threads = 1, .intra_op_threads = 1, .task = task_name(job, number)}),
          peers(all.cluster_, all.network_),
          worker(runtime, task_name(job, number), peers),
          master(worker, peers),
          eager_service(worker, all.network_) {
      worker_service.add_to(methods);
      master_service.add_to(methods);
      eager_service.add_to(methods);
      all.network_.serve(all.cluster_.address(job, number), &methods);
    }
    Runtime runtime;
    Peers peers;
    Worker worker;
    Master master;
    WorkerService worker_service{worker};
    MasterService master_service{master};
    EagerService eager_service;
    MethodTable methods;
  };
  Task& task(const std::string& job, int number) { return *tasks_.at(task_name(job, number)); }

 private:
  const ClusterSpec cluster_;
  InProcessNetwork network_;
  std::map<std::string, std::unique_ptr<Task>> tasks_;
};

/// Calls and waits for the answer.
inline std::pair<Status, Bytes> call(InProcessCluster::Task& task, const std::string& method,
                                     Bytes request) {
  std::promise<std::pair<Status, Bytes>> answer;
  task.methods.call(method, std::move(request), CallContext(), [&](Status status, Bytes reply) {
    answer.set_value({std::move(status), std::move(reply)});
  });
  return answer.get_future().get();
}

}  // namespace tandem::distribute
