#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/graph/function.h"
#include "tandem/graph/node_states.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/session.h"

namespace tandem::distribute {

/// What a task keeps for one session of a master: the graphs that it runs parts of, the state of
/// their stateful nodes and, where the session is isolated, variables and queues of its own.
/// Thread-safe.
class WorkerSession {
 public:
  WorkerSession(std::string handle, Runtime& runtime, bool isolated);

  const std::string& handle() const { return handle_; }
  bool isolated() const { return isolated_; }
  /// The runtime as steps of this session see it.
  Runtime& runtime() const { return session_.runtime(); }
  NodeStates& states() const { return *states_; }

  /// Returns the graph's handle: 16 digits.
  std::string add_graph(FunctionRef function);
  /// Null if there is none.
  FunctionRef find_graph(const std::string& graph) const;
  bool remove_graph(const std::string& graph);
  /// Ends an isolated session's state.
  void close() { session_.close(); }

 private:
  const std::string handle_;
  const bool isolated_;
  Session session_;
  const std::shared_ptr<NodeStates> states_ = std::make_shared<NodeStates>();
  mutable Mutex mutex_;
  std::map<std::string, FunctionRef> graphs_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t next_graph_ TANDEM_GUARDED_BY(mutex_) = 1;
};

}  // namespace tandem::distribute
