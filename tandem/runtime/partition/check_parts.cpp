// Whether the parts of a graph fit together.

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/rendezvous_key.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem {
namespace {

struct End {
  const Node* node = nullptr;
  const GraphPart* part = nullptr;
};

struct Exchange {
  End send, receive;
};

std::string text_of(const End& end) {
  return cat("'", end.node->name(), "' (part ", end.part->name, ")");
}

RendezvousKey key_of(const Node& node) {
  return {node.attr<std::string>("send_device"),
          static_cast<std::uint64_t>(node.attr<std::int64_t>("send_device_incarnation")),
          node.attr<std::string>("recv_device"),
          node.attr<std::string>("tensor_name"),
          {}};
}

void set_end(End& end, const Node& node, const GraphPart& part, const std::string& key,
             const char* what) {
  const End now{&node, &part};
  if (end.node) {
    throw InvalidArgumentError(cat("'", key, "' is ", what, " twice: by ", text_of(end), " and by ",
                                   text_of(now), ". Each value needs a name of its own."));
  }
  end = now;
}

void check_pair(const std::string& key, const Exchange& exchange) {
  if (!exchange.send.node) {
    throw InvalidArgumentError(cat(text_of(exchange.receive), " receives '", key, "', which ",
                                   exchange.receive.node->attr<std::string>("send_device"),
                                   " should send, but no part of the step does."));
  }
  if (!exchange.receive.node) {
    throw InvalidArgumentError(cat(text_of(exchange.send), " sends '", key, "', which ",
                                   exchange.send.node->attr<std::string>("recv_device"),
                                   " should receive, but no part of the step does."));
  }
  const DType sent = exchange.send.node->attr<DType>("T");
  const DType received = exchange.receive.node->attr<DType>("tensor_type");
  if (sent != received) {
    throw InvalidArgumentError(cat("'", key, "' is sent as ", sent, " by ", text_of(exchange.send),
                                   " but received as ", received, " by ", text_of(exchange.receive),
                                   "."));
  }
}

bool is_back_edge(const Node& from, const Node& to) {
  return from.kind() == NodeKind::kNextIteration && to.kind() == NodeKind::kMerge;
}

// Finds nodes of all parts that wait for each other in a cycle.
class CycleSearch {
 public:
  CycleSearch(std::span<const GraphPart> parts, const std::map<std::string, Exchange>& exchanges) {
    for (const GraphPart& part : parts) {
      for (const auto& node : part.function->body().nodes()) {
        index_.emplace(node.get(), static_cast<int>(ends_.size()));
        ends_.push_back({node.get(), &part});
      }
    }
    before_.resize(ends_.size());
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const Node& node = *ends_[i].node;
      for (const Output& in : node.inputs()) {
        if (in.node && !is_back_edge(*in.node, node)) before_[i].push_back(index_.at(in.node));
      }
      for (const Node* first : node.control_inputs()) before_[i].push_back(index_.at(first));
    }
    for (const auto& [key, exchange] : exchanges)
      before_[static_cast<std::size_t>(index_.at(exchange.receive.node))].push_back(
          index_.at(exchange.send.node));
  }

  // Follows what each node waits for; a node met on the way again closes a cycle.
  void run() {
    enum State : char { kNew, kOpen, kDone };
    std::vector<State> states(ends_.size(), kNew);
    struct Visit {
      int node;
      std::size_t next;
    };
    std::vector<Visit> way;
    for (std::size_t start = 0; start < ends_.size(); ++start) {
      if (states[start] == kNew) way.push_back({static_cast<int>(start), 0});
      while (!way.empty()) {
        Visit& visit = way.back();
        const auto n = static_cast<std::size_t>(visit.node);
        states[n] = kOpen;
        if (visit.next == before_[n].size()) {
          states[n] = kDone;
          way.pop_back();
          continue;
        }
        const int next = before_[n][visit.next++];
        const State state = states[static_cast<std::size_t>(next)];
        if (state == kOpen) {
          std::vector<int> cycle;
          for (auto at = way.rbegin(); at != way.rend(); ++at) {
            cycle.push_back(at->node);
            if (at->node == next) break;
          }
          refuse(cycle);
        }
        if (state == kNew) way.push_back({next, 0});
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::vector<int>& cycle) const {
    constexpr std::size_t kMaxNamed = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(cycle.size(), kMaxNamed); ++i)
      names += cat(i == 0 ? "" : ", which waits for ",
                   text_of(ends_[static_cast<std::size_t>(cycle[cycle.size() - 1 - i])]));
    if (cycle.size() > kMaxNamed) names += ", …";
    throw InvalidArgumentError(cat(cycle.size(), " nodes of the parts wait for each other in a ",
                                   "cycle, so the step would never end: ", names, "."));
  }

  std::vector<End> ends_;
  std::unordered_map<const Node*, int> index_;
  std::vector<std::vector<int>> before_;
};

}  // namespace

void check_parts(std::span<const GraphPart> parts) {
  std::map<std::string, Exchange> exchanges;
  for (const GraphPart& part : parts) {
    for (const auto& node : part.function->body().nodes()) {
      if (!is_transfer(node->kind()) || node->attr<bool>("client_terminated")) continue;
      const std::string key = key_of(*node).text();
      if (node->kind() == NodeKind::kSend) {
        set_end(exchanges[key].send, *node, part, key, "sent");
      } else {
        set_end(exchanges[key].receive, *node, part, key, "received");
      }
    }
  }
  for (const auto& [key, exchange] : exchanges) check_pair(key, exchange);
  CycleSearch(parts, exchanges).run();
}

}  // namespace tandem
