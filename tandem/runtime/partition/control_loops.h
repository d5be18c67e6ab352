#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/runtime/execute/frame_tree.h"

namespace tandem {

class OpRegistry;

/// A graph under partition: which part and which device each node, also of those that are added,
/// belongs to.
class CutGraph {
 public:
  /// `part_of_device`: by device. Takes ids of nodes that are in `graph` already.
  CutGraph(Graph& graph, std::vector<int> device_of, std::vector<int> part_of_device);

  Graph& graph() { return graph_; }
  int device(const Node& node) const { return device_of_[static_cast<std::size_t>(node.id())]; }
  int part(const Node& node) const { return part_of_device(device(node)); }
  int part_of_device(int device) const { return part_of_device_[static_cast<std::size_t>(device)]; }
  void move(const Node& node, int device) {
    device_of_[static_cast<std::size_t>(node.id())] = device;
  }
  /// Adds a node that runs on `device`.
  Node* add(Graph::NodeSpec spec, int device);

 private:
  Graph& graph_;
  std::vector<int> device_of_;
  std::vector<int> part_of_device_;
};

/// Puts control flow where its values are, so that no edge on which a value passes in some
/// iterations alone leads to another part: Switch and Exit to their input, Enter (but constant
/// ones) and NextIteration to what reads them, with a copy of their own for each part.
void colocate_control_flow(CutGraph& cut);

/// The control loops of a graph whose loops span parts.
class ControlLoops {
 public:
  /// Adds them. Throws InvalidArgumentError naming a loop over several parts without a LoopCond.
  ControlLoops(CutGraph& cut, const OpRegistry& ops);

  /// What a receive in `part` of the value that `from` makes has to wait for, so that it runs once
  /// in each iteration of the value's loop; null outside of loops.
  Node* pivot(const Node& from, int part) const;

 private:
  int frame_of_output(const Node& node) const;
  void find_frames();
  Node* add_loop(int frame, int part, int device);
  Node* add_node(const char* op, const std::string& name, std::vector<Output> inputs, AttrMap attrs,
                 int device);

  CutGraph& cut_;
  const OpRegistry& ops_;
  FrameTree tree_;
  struct Frame {
    Node* condition = nullptr;       // its LoopCond
    bool iterates = false;           // has a NextIteration
    std::map<int, int> devices;      // by part that takes part: one of its devices
    std::map<int, bool> needs_loop;  // by part
  };
  std::vector<Frame> frames_;
  std::map<std::pair<int, int>, Node*> pivots_;  // by frame and part
};

}  // namespace tandem
