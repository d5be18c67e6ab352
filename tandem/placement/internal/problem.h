#pragma once

#include <span>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/placement/constraints.h"
#include "tandem/placement/cost_model.h"

namespace tandem::placement {

/// A placement as the search sees it: the device of each group.
using Assignment = std::vector<int>;

/// A graph, its costs and constraints in flat arrays. Nodes are numbered in topological order.
struct Problem {
  Problem(const Graph& graph, const CostModel& costs, const Constraints& constraints);

  /// A value that a node reads, in the node's own memory or in the host's.
  struct Use {
    int value;
    bool on_host;
  };

  int size() const { return static_cast<int>(nodes.size()); }
  int num_groups() const { return static_cast<int>(allowed_of_group.size()); }
  const std::vector<int>& allowed(int of_group) const {
    return constraints
        .allowed[static_cast<std::size_t>(allowed_of_group[static_cast<std::size_t>(of_group)])];
  }
  double seconds(int node, int device) const {
    return seconds_by_class[static_cast<std::size_t>(node) * static_cast<std::size_t>(classes) +
                            static_cast<std::size_t>(costs.class_of(device))];
  }
  std::span<const Use> uses(int node) const { return part(use, use_begin, node); }
  std::span<const int> controls(int node) const { return part(control, control_begin, node); }
  /// The values that a node makes and somebody reads.
  int first_value(int node) const { return value_begin[static_cast<std::size_t>(node)]; }
  int end_value(int node) const { return value_begin[static_cast<std::size_t>(node) + 1]; }
  std::span<const int> members(int of_group) const { return part(member, member_begin, of_group); }
  /// Nodes that read a value, each once.
  std::span<const int> readers(int value) const { return part(reader, reader_begin, value); }

  int memory_of_value(int value, const Assignment& assignment) const {
    const auto v = static_cast<std::size_t>(value);
    const int device =
        assignment[static_cast<std::size_t>(group[static_cast<std::size_t>(value_node[v])])];
    return value_on_host[v] ? host(device) : memory(device);
  }
  /// Where a node on a device must have a value that it reads.
  int memory_of_use(const Use& u, int device) const {
    return u.on_host ? host(device) : memory(device);
  }
  int memory(int device) const { return memory_of[static_cast<std::size_t>(device)]; }
  int host(int device) const { return host_of[static_cast<std::size_t>(device)]; }

  const CostModel& costs;
  const Constraints& constraints;
  int classes = 0;
  std::vector<int> memory_of;  ///< by device
  std::vector<int> host_of;    ///< by device: the memory of its task's host
  bool limited = false;        ///< memory might not suffice somewhere

  std::vector<const Node*> nodes;
  std::vector<int> group;              ///< by node
  std::vector<char> is_task;           ///< by node
  std::vector<char> is_result;         ///< by node: its inputs are held to the end
  std::vector<double> variable_bytes;  ///< by node
  std::vector<double> seconds_by_class;
  std::vector<int> use_begin, control_begin, value_begin;
  std::vector<Use> use;
  std::vector<int> control;  ///< nodes
  std::vector<int> value_node;
  std::vector<double> value_bytes;
  std::vector<char> value_on_host;
  std::vector<char> value_everywhere;  ///< takes memory where it is wanted, but no copy
  /// By value, if `limited`: the value whose memory it can lie in, or -1; and whether that is by
  /// taking it over.
  std::vector<int> shares;
  std::vector<char> only_reuses;
  std::vector<int> reader_begin, reader;
  std::vector<int> member_begin, member;
  std::vector<int> allowed_of_group;

 private:
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<int>& begin, int i) {
    const auto at = static_cast<std::size_t>(i);
    return {all.data() + begin[at], all.data() + begin[at + 1]};
  }
  void number(const Graph& graph);
  void add_values();
  void add_uses();
  void add_sharing();
  void add_groups();

  std::vector<int> index_;  ///< by node id
};

}  // namespace tandem::placement
