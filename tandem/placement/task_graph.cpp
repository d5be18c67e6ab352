#include "tandem/placement/task_graph.h"

#include <algorithm>

#include "tandem/placement/internal/flat_tasks.h"
#include "tandem/placement/internal/tasks_of_node.h"

namespace tandem {
namespace {

using placement::is_back_edge;
using placement::is_everywhere;
using placement::is_task;

class Builder {
 public:
  Builder(const Graph& graph, const Placement& placement, const CostModel& costs)
      : placement_(placement), costs_(costs) {
    tasks_.lanes = TaskGraph::lanes_of(costs.devices());
    task_.assign(static_cast<std::size_t>(graph.id_limit()), -1);
    values_.assign(static_cast<std::size_t>(graph.id_limit()), 0);
    last_reader_.resize(static_cast<std::size_t>(graph.id_limit()));
  }

  TaskGraph build(const Graph& graph) {
    const std::vector<Node*> order = graph.topological_order();
    for (const Node* node : order) note_reader(*node);
    for (const Node* node : order) add(*node);
    for (const Node* node : order) {
      if (node->kind() == NodeKind::kRetval) keep(*node);
    }
    return std::move(tasks_);
  }

 private:
  static constexpr int kNone = -1, kResult = -2;

  struct Arrived {
    Output value;
    int memory;
    int task;  ///< the copy
    int held;
    int next;  ///< the next of the same node
  };

  int& task_of(const Node& node) { return task_[static_cast<std::size_t>(node.id())]; }

  // All edges to one task are added before those to the next.
  void add_edge(int first, int then) {
    auto& list = tasks_.after[static_cast<std::size_t>(first)];
    if (!list.empty() && list.back() == then) return;
    list.push_back(then);
    ++tasks_.before[static_cast<std::size_t>(then)];
  }

  int& last_reader(const Output& value) {
    auto& readers = last_reader_[static_cast<std::size_t>(value.node->id())];
    const auto i = static_cast<std::size_t>(value.index);
    if (readers.size() <= i) readers.resize(i + 1, kNone);
    return readers[i];
  }
  void note_reader(const Node& node) {
    for (const Output& in : node.inputs()) {
      if (!in.node) continue;
      int& last = last_reader(in);
      if (last == kResult) continue;
      last = node.kind() == NodeKind::kRetval ? kResult : node.id();
    }
  }

  // Where a value lies: in the memory where it was made, or a copy of it.
  struct Place {
    int task;
    int held;
  };
  Place arrival(const Output& value, int to) {
    const int from = placement_.output_memory(*value.node, value.index);
    const auto id = static_cast<std::size_t>(value.node->id());
    const int own = values_[id] + value.index;
    if (from == to) return {task_[id], held_of_value_[static_cast<std::size_t>(own)]};
    for (int i = copies_of_value_[static_cast<std::size_t>(own)]; i >= 0;
         i = arrived_[static_cast<std::size_t>(i)].next) {
      const Arrived& a = arrived_[static_cast<std::size_t>(i)];
      if (a.memory == to) return {a.task, a.held};
    }
    const double bytes = CostModel::output_bytes(*value.node, value.index);
    int task = task_[id];
    if (!is_everywhere(*value.node)) {
      const DeviceSet& devices = costs_.devices();
      const int before = devices.hop_before(to, from);
      const Place source = arrival(value, before);
      const double seconds = devices.copy_seconds(before, to, bytes);
      tasks_.copies.push_back({value, before, to, bytes, seconds});
      task = tasks_.add({TaskGraph::copy_lane(devices, before, to), seconds, nullptr,
                         static_cast<int>(tasks_.copies.size()) - 1});
      if (source.task >= 0) add_edge(source.task, task);
      read_by(source.held, task);
    }
    int& first = copies_of_value_[static_cast<std::size_t>(own)];
    const int held = hold(to, bytes, value.node, task);
    arrived_.push_back({value, to, task, held, first});
    first = static_cast<int>(arrived_.size()) - 1;
    return {task, held};
  }

  int hold(int memory, double bytes, const Node* node, int from) {
    tasks_.allocations.push_back({memory, bytes, node, from, {}, from < 0});
    return static_cast<int>(tasks_.allocations.size()) - 1;
  }

  void read_by(int held, int task) {
    if (held < 0 || task < 0) return;
    auto& until = tasks_.allocations[static_cast<std::size_t>(held)].until;
    if (until.empty() || until.back() != task) until.push_back(task);
  }

  void add(const Node& node) {
    std::vector<Place> inputs;
    inputs.reserve(node.inputs().size());
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      const Output& in = node.inputs()[i];
      const bool known = in.node && !is_back_edge(*in.node, node);
      inputs.push_back(known ? arrival(in, placement_.input_memory(node, static_cast<int>(i)))
                             : Place{-1, -1});
    }
    const int device = placement_.device(node);
    int task = -1;
    if (is_task(node)) {
      task = tasks_.add({3 * device, costs_.seconds(node, device), &node, -1});
      for (const Place& in : inputs) {
        if (in.task >= 0) add_edge(in.task, task);
        read_by(in.held, task);
      }
      for (const Node* before : node.control_inputs()) {
        if (task_of(*before) >= 0) add_edge(task_of(*before), task);
      }
    }
    task_of(node) = task;
    add_values(node, inputs, task);
  }

  void add_values(const Node& node, const std::vector<Place>& inputs, int task) {
    values_[static_cast<std::size_t>(node.id())] = static_cast<int>(held_of_value_.size());
    for (int i = 0; i < node.num_outputs(); ++i) {
      copies_of_value_.push_back(-1);
      const int memory = placement_.output_memory(node, i);
      const double variable = placement::variable_bytes(node);
      if (variable > 0) {
        held_of_value_.push_back(
            hold(placement_.devices.memory_of(placement_.device(node)), variable, &node, -1));
        continue;
      }
      const int shared = sharing(node, i, inputs, memory);
      held_of_value_.push_back(
          shared >= 0 ? shared : hold(memory, CostModel::output_bytes(node, i), &node, task));
    }
  }

  // The held memory of an input that an output lies in, or -1.
  int sharing(const Node& node, int output, const std::vector<Place>& inputs, int memory) {
    int input = placement::shared_input(node, output);
    if (input < 0) {
      input = placement::reusable_input(node, output, [&](int i) {
        const int held = inputs[static_cast<std::size_t>(i)].held;
        return held >= 0 && !tasks_.allocations[static_cast<std::size_t>(held)].permanent &&
               last_reader(node.inputs()[static_cast<std::size_t>(i)]) == node.id();
      });
      if (input < 0) return -1;
    }
    const int held = inputs[static_cast<std::size_t>(input)].held;
    return held >= 0 && tasks_.allocations[static_cast<std::size_t>(held)].memory == memory ? held
                                                                                            : -1;
  }

  // A result is held to the end, wherever it lies.
  void keep(const Node& node) {
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      const Output& in = node.inputs()[i];
      if (!in.node) continue;
      const Place at = arrival(in, placement_.input_memory(node, static_cast<int>(i)));
      if (at.held >= 0) tasks_.allocations[static_cast<std::size_t>(at.held)].permanent = true;
    }
  }

  const Placement& placement_;
  const CostModel& costs_;
  TaskGraph tasks_;
  std::vector<int> task_;    ///< by node id
  std::vector<int> values_;  ///< by node id: its first output's index in the next two
  std::vector<int> held_of_value_;
  std::vector<int> copies_of_value_;  ///< index of the newest in arrived_
  std::vector<Arrived> arrived_;
  std::vector<std::vector<int>> last_reader_;  ///< by node id and output: a node's id, or the above
};

}  // namespace

int TaskGraph::add(Task task) {
  tasks.push_back(task);
  after.emplace_back();
  before.push_back(0);
  return static_cast<int>(tasks.size()) - 1;
}

void TaskGraph::add_edge(int first, int then) {
  auto& list = after[static_cast<std::size_t>(first)];
  if (std::find(list.begin(), list.end(), then) != list.end()) return;
  list.push_back(then);
  ++before[static_cast<std::size_t>(then)];
}

std::vector<double> TaskGraph::remaining_path() const {
  return placement::remaining_path(placement::FlatTasks::of(*this));
}

std::vector<Lane> TaskGraph::lanes_of(const DeviceSet& devices) {
  std::vector<Lane> lanes;
  lanes.reserve(3 * devices.devices.size());
  for (int d = 0; d < devices.size(); ++d) {
    const int width = devices.devices[static_cast<std::size_t>(d)].streams;
    lanes.push_back({d, Lane::kCompute, width, width});
    lanes.push_back({d, Lane::kCopyIn, 1, 1});
    lanes.push_back({d, Lane::kCopyOut, 1, 1});
  }
  return lanes;
}

TaskGraph TaskGraph::of(const Graph& graph, const Placement& placement, const CostModel& costs) {
  return Builder(graph, placement, costs).build(graph);
}

}  // namespace tandem
