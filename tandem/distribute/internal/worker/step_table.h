#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/worker/worker_rendezvous.h"
#include "tandem/graph/local_collectives.h"
#include "tandem/graph/step_context.h"

namespace tandem::distribute {

/// Orders what a task says of a step that fails: the answers to its own RunGraph calls leave before
/// the RecvTensor answers that pass the failure on. Else a peer that waits for a value could report
/// the failure first, and the master would take it to have begun there. Thread-safe.
class FailureReplies {
 public:
  /// A RunGraph call of the step begins here; each is paired with an end_call() after its answer.
  void begin_call();
  /// Sends what was kept once no call is left.
  void end_call();
  /// Runs `reply` now, or keeps it while RunGraph calls are unanswered.
  void send(std::function<void()> reply);

 private:
  Mutex mutex_;
  int calls_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> kept_ TANDEM_GUARDED_BY(mutex_);
};

/// What the parts of one step that run in this task share. It ends with the last of them, and with
/// the calls that ask for its values.
struct WorkerStep {
  WorkerStep(std::int64_t number, const std::string& task, const Peers& peers)
      : id(number), rendezvous(make_ref<WorkerRendezvous>(number, task, peers, cancellation)) {}

  const std::int64_t id;
  const std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  const Ref<WorkerRendezvous> rendezvous;
  StepContainer container;
  LocalCollectives collectives;
  FailureReplies failure_replies;
  /// Set before it runs anything. An eager context's step has all of its ops, of which some may
  /// fail.
  bool outlives_failures = false;
};

/// The steps of a task by number. A step is there from the first call that names it, whether that
/// runs a part or asks for a value, until it is cleaned up. Thread-safe.
class StepTable {
 public:
  StepTable(std::string task, const Peers& peers) : task_(std::move(task)), peers_(peers) {}

  std::shared_ptr<WorkerStep> find_or_create(std::int64_t id);
  /// For a call that asks for a value: the step is forgotten when the last of these is released,
  /// unless a part of it runs or ran.
  std::shared_ptr<WorkerStep> of_receive(std::int64_t id);
  void end_receive(std::int64_t id);
  /// Ends the step: what waits in it gets `error`, null for one that says that it was cleaned up.
  /// Does nothing if there is none.
  void clean_up(std::int64_t id, std::exception_ptr error = nullptr);
  /// Ends all.
  void clean_up_all(const std::exception_ptr& error);
  std::vector<std::int64_t> ids() const;

 private:
  struct Entry {
    std::shared_ptr<WorkerStep> step;
    int receives = 0;
    bool runs = false;
  };
  Entry& entry(std::int64_t id) TANDEM_REQUIRES(mutex_);

  const std::string task_;
  const Peers& peers_;
  mutable Mutex mutex_;
  std::map<std::int64_t, Entry> steps_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
