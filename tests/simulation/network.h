#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/distribute/internal/rpc/method_table.h"

#include "tests/simulation/clock.h"

namespace tandem::simulation {

/// Nodes, and calls between them that take time, get lost, arrive twice and overtake each other.
/// All on the thread of the clock.
class Network {
 public:
  /// `trace` is called with what happens to each message, if there is one.
  explicit Network(Clock& clock, std::function<void(const std::string& line)> trace = {})
      : clock_(clock), trace_(std::move(trace)) {}

  /// The service of a node that has begun.
  void start(const std::string& node, std::shared_ptr<distribute::MethodTable> service);
  /// Calls that the node has not answered end with UNAVAILABLE.
  void stop(const std::string& node);
  /// What arrives at a paused node waits there.
  void pause(const std::string& node);
  void resume(const std::string& node);
  /// Nothing passes between the two, either way.
  void cut(const std::string& one, const std::string& other) { cuts_.insert({one, other}); }
  void heal(const std::string& one, const std::string& other) { cuts_.erase({one, other}); }
  void set_loss(double share) { loss_ = share; }

  /// Lives as long as the network.
  distribute::Channel* channel(const std::string& from, const std::string& to);

 private:
  struct Call;
  struct Node {
    std::shared_ptr<distribute::MethodTable> service;
    int life = 0;
    bool paused = false;
    std::vector<std::function<void()>> arrived;
    std::map<std::uint64_t, std::shared_ptr<Call>> open;  // by id
  };
  struct Call {
    std::uint64_t id;
    std::string from, to;
    const char* method;
    std::string request;
    std::shared_ptr<const Cancellation> cancellation;
    distribute::ReplyDone done;
    distribute::CallContext context = {};  // at the node that is called
  };
  class Way;
  void begin(const std::shared_ptr<Call>& call, const distribute::CallOptions& options);
  void deliver(const std::shared_ptr<Call>& call);
  void answer(const std::shared_ptr<Call>& call, int life, const distribute::Status& status,
              const distribute::Bytes& reply);
  void finish(const std::shared_ptr<Call>& call, distribute::Status status,
              distribute::Bytes reply);
  bool is_cut(const std::string& one, const std::string& other) const;
  void note(const Call& call, const std::string& what) const;

  Clock& clock_;
  const std::function<void(const std::string& line)> trace_;
  double loss_ = 0;
  std::uint64_t next_id_ = 0;
  std::map<std::string, Node> nodes_;
  std::set<std::pair<std::string, std::string>> cuts_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<distribute::Channel>> ways_;
};

}  // namespace tandem::simulation
