#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/core/resource_handle.h"

namespace tandem {

class Collectives;   // tandem/graph/collectives.h
class NodeStates;    // tandem/graph/node_states.h
class Rendezvous;    // tandem/graph/rendezvous.h
class StepRecorder;  // tandem/runtime/profile/step_recorder.h

/// Resources that live as long as one step: kernels of the step share them by name, and they are
/// gone when it ends. Thread-safe.
class TANDEM_EXPORT StepContainer {
 public:
  StepContainer() = default;
  StepContainer(const StepContainer&) = delete;
  StepContainer& operator=(const StepContainer&) = delete;

  /// The resource of that name, made by `make`, without a lock held, if there is none yet; of
  /// several made at a time the first one stays.
  Ref<Resource> lookup_or_create(std::string_view name, const std::function<Ref<Resource>()>& make);
  /// Null when absent.
  Ref<Resource> lookup(std::string_view name) const;
  /// The resource that was there, or null.
  Ref<Resource> remove(std::string_view name);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Ref<Resource>, std::less<>> resources_;  // guarded by mutex_
};

/// The nodes of a step that its end found unfinished, for the message of its failure. Thread-safe.
class TANDEM_EXPORT UnfinishedNodes {
 public:
  void add(std::string_view node, std::string_view op);
  /// "'dequeue' (QueueDequeueV2), 'a' (If) and 3 more"; empty if there are none.
  std::string to_string() const;

 private:
  static constexpr std::size_t kMaxNamed = 8;
  mutable std::mutex mutex_;
  std::vector<std::string> named_;  // guarded by mutex_
  std::size_t more_ = 0;            // guarded by mutex_
};

/// What belongs to one step: the run of a function that a program asked for, with all that it calls
/// in turn. It goes along through executables, runners, function calls and kernels. Plain pointers:
/// who starts the step (`StepScope` in runtime) owns what they point to until all of it has ended.
/// What a step does not have is null.
struct StepContext {
  using Time = std::chrono::steady_clock::time_point;

  std::int64_t id = 0;  ///< which no other step of the process has; 0: an eager call
  const Cancellation* cancellation = nullptr;  ///< what may stop it; a deadline cancels it too
  Time deadline = Time::max();                 ///< max(): none
  Rendezvous* rendezvous = nullptr;            ///< where its parts exchange values
  StepContainer* container = nullptr;          ///< resources that end with it
  Collectives* collectives = nullptr;          ///< reductions and gathers across devices
  StepRecorder* recorder = nullptr;            ///< what records it for the profiler
  NodeStates* session = nullptr;  ///< what stateful nodes keep from step to step of a session
  UnfinishedNodes* unfinished = nullptr;
  int depth = 0;  ///< calls of functions within each other that this one is in
};

}  // namespace tandem
