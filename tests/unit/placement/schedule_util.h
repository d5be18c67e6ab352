#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"
#include "tandem/placement/task_graph.h"

namespace tandem::schedule_test {

/// Numbers from 0 to below `n`, the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761u + 1) {}
  int below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_;
};

/// Lanes of one width and depth each, all of device 0.
inline std::vector<Lane> lanes(int count, int width = 1, int depth = 1) {
  return std::vector<Lane>(static_cast<std::size_t>(count), Lane{0, Lane::kCompute, width, depth});
}

inline int add(TaskGraph& tasks, int lane, double seconds, const std::vector<int>& after = {}) {
  Task task;
  task.lane = lane;
  task.seconds = seconds;
  const int id = tasks.add(task);
  for (const int first : after) tasks.add_edge(first, id);
  return id;
}

/// Tasks of random lanes and lengths that wait for a few of those before them.
inline TaskGraph random_tasks(std::uint64_t seed, int count, std::vector<Lane> lanes) {
  Random random(seed);
  TaskGraph tasks;
  tasks.lanes = std::move(lanes);
  for (int t = 0; t < count; ++t) {
    std::vector<int> after;
    for (int k = random.below(3); k > 0 && t > 0; --k) after.push_back(random.below(t));
    add(tasks, random.below(static_cast<int>(tasks.lanes.size())), random.below(5), after);
  }
  return tasks;
}

/// What a device set's JSON has for CPU:0 and `gpus` accelerators: a flop takes 1 s on the CPU and
/// 1/4 s on an accelerator, a byte 1 s on a link, and nothing else takes any time.
inline DeviceSet devices(int gpus) {
  DeviceSet set;
  for (int d = 0; d <= gpus; ++d) {
    DeviceModel device;
    device.spec = DeviceSpec::parse("/job:localhost/replica:0/task:0/device:CPU:0");
    device.host_memory = d == 0;
    device.flops = d == 0 ? 1 : 4;
    if (d > 0) {
      device.spec.type = "GPU";
      device.spec.index = d - 1;
      device.link_bandwidth = 1;
    }
    set.devices.push_back(std::move(device));
  }
  return set;
}

/// A graph of ops that cost what is said.
class WorkGraph {
 public:
  Node* work(const std::string& name, double flops, const std::vector<Node*>& inputs = {},
             double bytes = 4, const std::string& device = "");
  Node* arg(const std::string& name, double bytes);
  Node* variable(const std::string& name, double bytes);
  /// In the place of its only input.
  Node* same(const std::string& name, Node* input);

  Graph graph;

 private:
  Node* add(const char* op, const std::string& name, const std::vector<Node*>& inputs,
            AttrMap attrs, const std::string& device = "");
};

/// All nodes on one device.
Placement all_on(const Graph& graph, const DeviceSet& devices, int device);

/// Runs `f`, which must throw an InvalidArgumentError, and returns its message.
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace tandem::schedule_test
