#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/ref.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/op_def.h"

namespace tandem {

/// What a `keeps_state` op keeps from one execution to the next (a random generator's position,
/// say): one for each node of a plan, or for each distinct (op, attributes) of eager calls. Lock
/// `mutex` while using the rest.
struct NodeState {
  std::mutex mutex;
  std::uint64_t counter = 0;
  Ref<RefCounted> object;
};

/// What the nodes of one function keep from one execution to the next, by name: its plans, for
/// other shapes and schedules, go on where another left off. Passes may give one name to different
/// nodes in the graphs for different shapes: what a stateless op keeps belongs to its op and
/// attributes too.
///
/// What stateful nodes keep belongs to the session where there is one, and so goes on from one
/// signature of its graph to another. Thread-safe.
class NodeStates : public std::enable_shared_from_this<NodeStates> {
 public:
  NodeStates() = default;
  /// `session`, which may be null, has the states of stateful nodes.
  explicit NodeStates(std::shared_ptr<NodeStates> session) : session_(std::move(session)) {}

  NodeState& of(const Node& node) {
    const bool by_name = node.op().traits.stateful;
    if (by_name && session_) return session_->of(node);
    std::lock_guard lock(mutex_);
    std::vector<Entry>& entries = states_[node.name()];
    for (const Entry& e : entries) {
      if (e.op == node.op().name && (by_name || e.attrs == node.attrs())) return *e.state;
    }
    entries.push_back(
        {node.op().name, by_name ? AttrMap() : node.attrs(), std::make_unique<NodeState>()});
    return *entries.back().state;
  }

  /// For a session: the states of a function that its graph calls, by something that stands for the
  /// function and lives at least as long.
  std::shared_ptr<NodeStates> of_function(const void* function) {
    std::lock_guard lock(mutex_);
    std::shared_ptr<NodeStates>& states = functions_[function];
    if (!states) states = std::make_shared<NodeStates>();
    return states;
  }
  const std::shared_ptr<NodeStates>& session() const { return session_; }

 private:
  struct Entry {
    std::string op;
    AttrMap attrs;
    std::unique_ptr<NodeState> state;
  };
  const std::shared_ptr<NodeStates> session_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Entry>> states_;    // guarded by mutex_
  std::map<const void*, std::shared_ptr<NodeStates>> functions_;  // guarded by mutex_
};

}  // namespace tandem
