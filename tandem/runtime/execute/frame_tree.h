#pragma once

#include <string>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem {

/// Which loop each node of a graph belongs to. An Enter belongs to the frame that it leaves, an
/// Exit to the frame of the loop that it ends.
struct FrameTree {
  struct Frame {
    std::string name;  ///< "" for the graph itself
    int parent = -1;
    int parallel_iterations = 1;
  };
  std::vector<Frame> frames;     ///< a parent stands before its children; 0 is the graph itself
  std::vector<int> frame_of;     ///< by node id
  std::vector<int> enters_into;  ///< by node id: the frame that an Enter leads into, else -1

  /// Throws InvalidArgumentError that names the nodes when inputs come from different frames, or a
  /// loop is otherwise not well formed. `order` is topological.
  FrameTree(const Graph& graph, const std::vector<Node*>& order);

 private:
  int output_frame(const Node& node) const;
  int enter(const Node& node, int from);
  void check_loop_ends(const Node& node) const;
};

}  // namespace tandem
