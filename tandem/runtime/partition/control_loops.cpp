#include "tandem/runtime/partition/control_loops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

bool is_constant_enter(const Node& node) {
  return node.kind() == NodeKind::kEnter && node.attr<bool>("is_constant");
}

bool gives_reference(const Node& node) {
  return node.num_outputs() > 0 && is_ref(node.output_dtype(0));
}

// Gives `node`, an Enter or a NextIteration, a copy in each part that reads it.
void go_to_readers(CutGraph& cut, Node& node, const std::vector<Node*>& readers) {
  std::map<int, Node*> in_part;
  for (Node* reader : readers) {
    const int part = cut.part(*reader);
    Node*& here = in_part[part];
    if (here == nullptr && in_part.size() == 1) {
      here = &node;
      if (cut.part(node) != part) cut.move(node, cut.device(*reader));
    } else if (here == nullptr) {
      here = cut.add({.op = &node.op(),
                      .name = node.name(),
                      .inputs = node.inputs(),
                      .attrs = node.attrs(),
                      .control_inputs = node.control_inputs(),
                      .device = {},
                      .where = node.where()},
                     cut.device(*reader));
      cut.graph().set_output_shape(here, 0, node.output_shape(0));
    }
    if (here == &node) continue;
    for (std::size_t i = 0; i < reader->inputs().size(); ++i) {
      if (reader->inputs()[i].node == &node)
        cut.graph().set_input(reader, static_cast<int>(i), {here, 0});
    }
    std::vector<Node*> before = reader->control_inputs();
    std::replace(before.begin(), before.end(), &node, here);
    cut.graph().set_control_inputs(reader, std::move(before));
  }
}

}  // namespace

CutGraph::CutGraph(Graph& graph, std::vector<int> device_of, std::vector<int> part_of_device)
    : graph_(graph), device_of_(std::move(device_of)), part_of_device_(std::move(part_of_device)) {
  device_of_.resize(static_cast<std::size_t>(graph.id_limit()), -1);
}

Node* CutGraph::add(Graph::NodeSpec spec, int device) {
  Node* node = graph_.add(std::move(spec));
  device_of_.resize(static_cast<std::size_t>(graph_.id_limit()), -1);
  move(*node, device);
  return node;
}

void colocate_control_flow(CutGraph& cut) {
  const std::vector<Node*> order = cut.graph().topological_order();
  for (const Node* node : order) {
    if (node->kind() != NodeKind::kSwitch && node->kind() != NodeKind::kExit) continue;
    const Node& input = *node->inputs()[0].node;
    if (cut.part(input) != cut.part(*node)) cut.move(*node, cut.device(input));
  }
  const std::vector<std::vector<Node*>> readers = cut.graph().consumers();
  for (Node* node : order) {
    const bool once = node->kind() == NodeKind::kNextIteration ||
                      (node->kind() == NodeKind::kEnter && !is_constant_enter(*node));
    if (once && !gives_reference(*node)) go_to_readers(cut, *node, at(readers, node->id()));
  }
}

ControlLoops::ControlLoops(CutGraph& cut, const OpRegistry& ops)
    : cut_(cut), ops_(ops), tree_(cut.graph(), cut.graph().topological_order()) {
  frames_.resize(tree_.frames.size());
  if (frames_.size() == 1) return;
  find_frames();
  for (std::size_t f = 1; f < frames_.size(); ++f) {
    if (frames_[f].devices.size() < 2) continue;
    // Adding a loop adds to the frames around it, of lower numbers, alone.
    for (const auto& [part, device] : frames_[f].devices) {
      if (frames_[f].needs_loop[part]) add_loop(static_cast<int>(f), part, device);
    }
  }
}

int ControlLoops::frame_of_output(const Node& node) const {
  const auto id = static_cast<std::size_t>(node.id());
  if (id >= tree_.frame_of.size()) return 0;  // added since
  const int frame = tree_.frame_of[id];
  if (node.kind() == NodeKind::kEnter) return tree_.enters_into[id];
  if (node.kind() == NodeKind::kExit) return at(tree_.frames, frame).parent;
  return frame;
}

// A part needs a control loop of a frame if it receives values in it, or has nothing else that
// starts iterations.
void ControlLoops::find_frames() {
  std::set<std::pair<int, int>> starts, receives;
  for (const auto& node : cut_.graph().nodes()) {
    const int part = cut_.part(*node);
    const int inside = tree_.frame_of[static_cast<std::size_t>(node->id())];
    for (const int f : {inside, frame_of_output(*node)})
      at(frames_, f).devices.emplace(part, cut_.device(*node));
    Frame& frame = at(frames_, inside);
    if (node->kind() == NodeKind::kLoopCond && !frame.condition) frame.condition = node.get();
    if (node->kind() == NodeKind::kNextIteration) {
      frame.iterates = true;
      starts.emplace(inside, part);
    }
    const auto note = [&](const Node& from) {
      if (cut_.part(from) != part) receives.emplace(frame_of_output(from), part);
    };
    for (const Output& in : node->inputs()) note(*in.node);
    for (const Node* before : node->control_inputs()) note(*before);
  }
  for (std::size_t f = 1; f < frames_.size(); ++f) {
    for (const auto& [part, device] : frames_[f].devices) {
      const std::pair<int, int> key(static_cast<int>(f), part);
      frames_[f].needs_loop[part] = receives.contains(key) || !starts.contains(key);
    }
  }
}

Node* ControlLoops::add_node(const char* op, const std::string& name, std::vector<Output> inputs,
                             AttrMap attrs, int device) {
  return cut_.add({.op = &ops_.get(op),
                   .name = name,
                   .inputs = std::move(inputs),
                   .attrs = std::move(attrs),
                   .control_inputs = {},
                   .device = {},
                   .where = {}},
                  device);
}

Node* ControlLoops::add_loop(int number, int part, int device) {
  Node*& pivot = pivots_[{number, part}];
  if (pivot) return pivot;
  const Frame& frame = at(frames_, number);
  const FrameTree::Frame& info = at(tree_.frames, number);
  if (frame.iterates && !frame.condition) {
    throw InvalidArgumentError(cat("A cross-device loop must have a pivot predicate: ", info.name,
                                   ". Its condition needs a LoopCond."));
  }
  const std::string name = cat(info.name, "/control_loop");
  // In the frame around it the loop is entered once an iteration.
  Node* trigger = nullptr;
  if (info.parent != 0) {
    trigger = add_loop(info.parent, part, device);
  } else {
    AttrMap value;
    value.set("dtype", DType::kFloat);
    value.set("value", Array::scalar(0.0f));
    trigger = add_node("Const", name + "/start", {}, std::move(value), device);
  }
  Node* enter = add_node("Enter", name + "/enter", {{trigger, 0}},
                         AttrMap{{"frame_name", info.name},
                                 {"is_constant", false},
                                 {"parallel_iterations", info.parallel_iterations}},
                         device);
  if (!frame.iterates) return pivots_[{number, part}] = enter;
  Node* merge = add_node("Merge", name + "/merge", {{enter, 0}, Output{}},
                         AttrMap{{"T", DType::kFloat}, {"N", 2}}, device);
  Node* taken =
      add_node("Switch", name + "/switch", {{merge, 0}, {frame.condition, 0}}, {}, device);
  Node* next = add_node("NextIteration", name + "/next", {{taken, 1}}, {}, device);
  cut_.graph().set_input(merge, 1, {next, 0});
  return pivots_[{number, part}] = merge;
}

Node* ControlLoops::pivot(const Node& from, int part) const {
  const int frame = frame_of_output(from);
  if (frame == 0) return nullptr;
  return pivots_.at({frame, part});
}

}  // namespace tandem
