#include "tandem/distribute/internal/worker/worker_session.h"

#include <utility>

namespace tandem::distribute {
namespace {

Session session_in(Runtime& runtime, bool isolated) {
  const RuntimeScope scope(runtime);
  return Session({.isolate_state = isolated});
}

}  // namespace

WorkerSession::WorkerSession(std::string handle, Runtime& runtime, bool isolated)
    : handle_(std::move(handle)), isolated_(isolated), session_(session_in(runtime, isolated)) {}

std::string WorkerSession::add_graph(FunctionRef function) {
  const MutexLock lock(mutex_);
  std::string digits = std::to_string(next_graph_++);
  std::string graph = std::string(digits.size() < 16 ? 16 - digits.size() : 0, '0') + digits;
  graphs_.emplace(graph, std::move(function));
  return graph;
}

FunctionRef WorkerSession::find_graph(const std::string& graph) const {
  const MutexLock lock(mutex_);
  const auto found = graphs_.find(graph);
  return found == graphs_.end() ? nullptr : found->second;
}

bool WorkerSession::remove_graph(const std::string& graph) {
  FunctionRef removed;  // without the lock
  const MutexLock lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return false;
  removed = std::move(found->second);
  graphs_.erase(found);
  return true;
}

}  // namespace tandem::distribute
