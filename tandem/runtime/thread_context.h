#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/timer.h"
#include "tandem/device/device_spec.h"

namespace tandem {

class NodeStates;   // tandem/graph/node_states.h
class RngPosition;  // tandem/graph/rng_position.h
class OpRecorder;
class Runtime;
class StepRecorder;  // tandem/runtime/profile/step_recorder.h
class Trace;
struct VariableCreators;  // tandem/ops/variable_creator.h

// Scopes belong to the thread that makes them: other threads neither see them nor may end them, and
// of one thread's scopes the one made last ends first, as blocks do by themselves. Threads begin
// without any; ThreadContextScope takes a thread's scopes to another.

/// Everything of a thread that changes what an op call means. One struct, so that pools, map
/// functions and callbacks capture and restore all of it at once (`ThreadContextScope`). What it
/// points to must outlive its use.
struct ThreadContext {
  std::shared_ptr<Runtime> runtime;  ///< null: the default runtime
  Trace* trace = nullptr;            ///< the function being traced, or null for eager calls
  std::vector<std::shared_ptr<OpRecorder>> recorders;  ///< tapes that listen, outermost first
  std::vector<std::string> devices;                    ///< device scopes, outermost first
  std::string name_scope;                              ///< prefix "a/b/" of node names
  std::shared_ptr<const Cancellation> cancellation;  ///< what may stop the thread's calls, or null
  /// When `cancellation` comes by itself; max(): never.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::shared_ptr<StepRecorder>
      recorder;                         ///< of a profiler::Recording; null: the profiler's, if any
  std::shared_ptr<NodeStates> session;  ///< that the next step belongs to, which takes it; or null
  std::shared_ptr<const VariableCreators> variable_creators;  ///< innermost first, or null
  std::shared_ptr<RngPosition> draws;  ///< where random ops draw from, or null: what they keep
  DType autocast = DType::kInvalid;    ///< of an AutocastScope (tandem/ops/autocast.h), or kInvalid
};

/// The calling thread's context; the reference is good until the thread ends.
TANDEM_EXPORT ThreadContext& thread_context();

/// Sets the thread's context for a block and restores it afterwards.
class TANDEM_EXPORT ThreadContextScope {
 public:
  explicit ThreadContextScope(ThreadContext context);
  ~ThreadContextScope();
  ThreadContextScope(const ThreadContextScope&) = delete;
  ThreadContextScope& operator=(const ThreadContextScope&) = delete;

 private:
  ThreadContext saved_;
};

/// Ops called in the block run on `device` where possible: `td::DeviceScope on("/GPU:0");`. Inner
/// scopes win; partial names combine with outer ones; "" clears them. Throws InvalidArgumentError
/// on a malformed name.
class TANDEM_EXPORT DeviceScope {
 public:
  explicit DeviceScope(const std::string& device);
  explicit DeviceScope(const char* device)
      : DeviceScope(internal::name_argument(device, "the name of a device")) {}
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
};

/// Function calls, ops that wait, and iterations of datasets in the block stop with CancelledError
/// once `cancellation` is cancelled, from any thread:
///
///     auto stop = std::make_shared<td::Cancellation>();
///     auto stop_here = [&] { td::CancellationScope on(stop); train(); };
///     auto done = std::async(std::launch::async, stop_here);
///     stop->cancel();  // done.get() then throws CancelledError
///
/// In a scope within a scope calls stop with either's cancellation. Without one (null) the scope
/// changes nothing.
class TANDEM_EXPORT CancellationScope {
 public:
  explicit CancellationScope(std::shared_ptr<const Cancellation> cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  std::shared_ptr<const Cancellation> saved_;
};

/// Function calls, ops that wait, and iterations of datasets in the block end with
/// DeadlineExceededError once `timeout` is over, from the beginning of the block; the message names
/// the nodes that had not ended. What blocks is woken: a wait for a queue, a loop, a copy.
///
///     td::DeadlineScope within(std::chrono::seconds(2));
///     Tensor y = model(x);
///
/// Of a scope within a scope the earlier deadline counts. A kernel that computes is not
/// interrupted. Throws InvalidArgumentError unless `timeout` is greater than zero.
class TANDEM_EXPORT DeadlineScope {
 public:
  explicit DeadlineScope(std::chrono::nanoseconds timeout);
  ~DeadlineScope();
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;

 private:
  std::shared_ptr<const Cancellation> saved_;
  std::chrono::steady_clock::time_point saved_deadline_;
  Timer timer_;
};

/// Names of nodes made in the block begin with "name/", behind those of outer scopes. As in
/// TensorFlow a name that ends in "/" stands for itself, whatever the outer scopes, and "" leaves
/// them.
class TANDEM_EXPORT NameScope {
 public:
  explicit NameScope(const std::string& name);
  explicit NameScope(const char* name)
      : NameScope(internal::name_argument(name, "the name of a scope")) {}
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  std::string saved_;
};

}  // namespace tandem
