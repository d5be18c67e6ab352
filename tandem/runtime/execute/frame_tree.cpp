#include "tandem/runtime/execute/frame_tree.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

bool is_back_edge(const Node& from, const Node& to) {
  return from.kind() == NodeKind::kNextIteration && to.kind() == NodeKind::kMerge;
}

}  // namespace

FrameTree::FrameTree(const Graph& graph, const std::vector<Node*>& order) : frames(1) {
  frame_of.assign(static_cast<std::size_t>(graph.id_limit()), 0);
  enters_into.assign(static_cast<std::size_t>(graph.id_limit()), -1);
  for (const Node* node : order) {
    int frame = 0;
    const Node* first = nullptr;
    const auto follow = [&](const Node& input) {
      if (is_back_edge(input, *node)) return;
      const int of_input = output_frame(input);
      if (!first) {
        first = &input;
        frame = of_input;
      } else if (frame != of_input) {
        throw InvalidArgumentError(
            cat(node->describe(), " has inputs from different frames. The input '", first->name(),
                "' is in frame '", at(frames, frame).name, "'. The input '", input.name(),
                "' is in frame '", at(frames, of_input).name,
                "'. Pass values into a loop with Enter and out with Exit."));
      }
    };
    for (const Output& in : node->inputs()) follow(*in.node);
    for (const Node* before : node->control_inputs()) follow(*before);
    at(frame_of, node->id()) = frame;
    if (node->kind() == NodeKind::kEnter) at(enters_into, node->id()) = enter(*node, frame);
    if (frame == 0 &&
        (node->kind() == NodeKind::kExit || node->kind() == NodeKind::kNextIteration)) {
      throw InvalidArgumentError(
          cat(node->describe(), " stands outside of a loop: no Enter leads to it."));
    }
  }
  for (const Node* node : order) check_loop_ends(*node);
}

int FrameTree::output_frame(const Node& node) const {
  const int frame = at(frame_of, node.id());
  if (node.kind() == NodeKind::kEnter) return at(enters_into, node.id());
  if (node.kind() == NodeKind::kExit) return at(frames, frame).parent;
  return frame;
}

int FrameTree::enter(const Node& node, int from) {
  const auto& name = node.attr<std::string>("frame_name");
  const auto parallel = static_cast<int>(
      std::clamp<std::int64_t>(node.attr<std::int64_t>("parallel_iterations"), 1, 1 << 16));
  for (std::size_t f = 1; f < frames.size(); ++f) {
    if (frames[f].parent == from && frames[f].name == name) return static_cast<int>(f);
  }
  frames.push_back({name, from, parallel});
  return static_cast<int>(frames.size()) - 1;
}

void FrameTree::check_loop_ends(const Node& node) const {
  const int frame = at(frame_of, node.id());
  for (const Output& in : node.inputs()) {
    if (in.node->kind() != NodeKind::kNextIteration) continue;
    if (node.kind() != NodeKind::kMerge) {
      throw InvalidArgumentError(cat(node.describe(), " uses the NextIteration '", in.node->name(),
                                     "', which may only feed a Merge."));
    }
    if (at(frame_of, in.node->id()) != frame) {
      throw InvalidArgumentError(cat(
          node.describe(), " is in frame '", at(frames, frame).name, "' but the NextIteration '",
          in.node->name(), "' is in frame '", at(frames, at(frame_of, in.node->id())).name, "'."));
    }
  }
  for (const Node* before : node.control_inputs()) {
    if (before->kind() == NodeKind::kNextIteration) {
      throw InvalidArgumentError(cat(node.describe(), " waits for the NextIteration '",
                                     before->name(), "', which may only feed a Merge."));
    }
  }
}

}  // namespace tandem
