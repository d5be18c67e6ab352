#include "tandem/graph/rewrite.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/fusion_target.h"
#include "tandem/graph/internal/anchors.h"
#include "tandem/graph/internal/replacements.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"

namespace tandem {
namespace {

template <class T>
bool all_equal_to(const Array& a, double value) {
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    if (static_cast<double>(a.data<T>()[i]) != value) return false;
  }
  return true;
}

}  // namespace

UseCounts::UseCounts(const MutableFunction& f) {
  by_id_.resize(static_cast<std::size_t>(f.graph.id_limit()));
  for (const auto& node : f.graph.nodes()) added(node.get());
  for (const Output& r : f.results) counts(r.node).add(r.index, 1);
  for (const Node* n : f.control_results) counts(n).add_control(1);
}

void UseCounts::Counts::add(int output, int count) {
  outputs[static_cast<std::size_t>(output)] += count;
  sum += count;
}

void UseCounts::Counts::add_control(int count) {
  control += count;
  sum += count;
}

UseCounts::Counts& UseCounts::counts(const Node* node) {
  const auto id = static_cast<std::size_t>(node->id());
  if (id >= by_id_.size()) by_id_.resize(id + 1);
  Counts& counts = by_id_[id];
  if (counts.outputs.empty()) counts.outputs.resize(static_cast<std::size_t>(node->num_outputs()));
  return counts;
}

int UseCounts::of(Output output) const {
  const Counts& counts = by_id_[static_cast<std::size_t>(output.node->id())];
  return counts.outputs.empty() ? 0 : counts.outputs[static_cast<std::size_t>(output.index)];
}

int UseCounts::of(const Node* node) const {
  return by_id_[static_cast<std::size_t>(node->id())].sum;
}

int UseCounts::waiting_for(const Node* node) const {
  return by_id_[static_cast<std::size_t>(node->id())].control;
}

void UseCounts::added(const Node* node) {
  counts(node);
  for (const Output& in : node->inputs())
    if (in.node) counts(in.node).add(in.index, 1);
  for (const Node* before : node->control_inputs()) counts(before).add_control(1);
}

void UseCounts::removed(const Node* node) {
  for (const Output& in : node->inputs())
    if (in.node) counts(in.node).add(in.index, -1);
  for (const Node* before : node->control_inputs()) counts(before).add_control(-1);
}

void UseCounts::release(const Node* node) {
  std::vector<const Node*> pending{node};
  while (!pending.empty()) {
    const Node* unused = pending.back();
    pending.pop_back();
    for (const Output& in : unused->inputs()) {
      counts(in.node).add(in.index, -1);
      if (of(in.node) == 0) pending.push_back(in.node);
    }
    for (const Node* before : unused->control_inputs()) {
      counts(before).add_control(-1);
      if (of(before) == 0) pending.push_back(before);
    }
  }
}

void UseCounts::replaced(Output from, Output to) {
  const int moved = counts(from.node).outputs[static_cast<std::size_t>(from.index)];
  counts(from.node).add(from.index, -moved);
  counts(to.node).add(to.index, moved);
  if (of(from.node) == 0) release(from.node);
}

FusionTarget::~FusionTarget() = default;
FusionTarget::Elementwise FusionTarget::elementwise(const Node&) const {
  return Elementwise::kLarge;
}
bool FusionTarget::launches_cost_time(const Node&) const { return false; }
void FusionTarget::keep_apart(const Node&, const Node&, const std::string&) {}

namespace {

// What `root` is computed by, back to the inputs of what is to stand for it: each after its inputs.
void collect_replaced(const Node* root, const std::vector<Output>& inputs,
                      std::vector<const Node*>& replaced) {
  constexpr std::size_t kMaxReplaced = 64;
  const auto is_input = [&](const Output& value) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Output& in) { return in.node == value.node; });
  };
  std::vector<std::pair<const Node*, std::size_t>> path{{root, 0}};
  while (!path.empty()) {
    auto& [node, next] = path.back();
    if (next == node->inputs().size()) {
      if (std::find(replaced.begin(), replaced.end(), node) == replaced.end())
        replaced.push_back(node);
      path.pop_back();
      continue;
    }
    const Output in = node->inputs()[next++];
    if (is_input(in) || in.node->inputs().empty() || replaced.size() >= kMaxReplaced ||
        std::find(replaced.begin(), replaced.end(), in.node) != replaced.end() ||
        path.size() >= kMaxReplaced)
      continue;
    path.emplace_back(in.node, 0);
  }
}

}  // namespace

bool RewriteContext::target_accepts(const Node* replaced, const Node* by) {
  if (!target_ || accepted_) return true;
  if (refused_) return false;
  if (std::find(added_.begin(), added_.end(), by) == added_.end()) return true;
  std::vector<const Node*> nodes;
  std::vector<Output> inputs;
  for (const Node* node : added_)
    inputs.insert(inputs.end(), node->inputs().begin(), node->inputs().end());
  if (replaced != &node_) collect_replaced(replaced, inputs, nodes);
  collect_replaced(&node_, inputs, nodes);
  accepted_ = target_->accepts(added_, nodes);
  refused_ = !accepted_;
  if (refused_) {
    for (auto node = added_.rbegin(); node != added_.rend(); ++node) uses_->removed(*node);
  }
  return accepted_;
}

bool RewriteContext::launches_cost_time() const {
  return target_ && target_->launches_cost_time(node_);
}

void RewriteContext::keep_apart(Output value, const char* why) const {
  if (target_) target_->keep_apart(*value.node, node_, why);
}

void RewriteContext::replace(Output from, Output to) {
  if (!target_accepts(from.node, to.node)) return;
  graph_.replace_uses(from, to);
  if (replacements_) replacements_->add(from, to);
  if (uses_) uses_->replaced(from, to);
}

Node* RewriteContext::add(std::string_view op, std::vector<Output> inputs, AttrMap attrs) {
  Graph::NodeSpec spec;
  spec.op = &ops_.get(op);
  spec.name = cat(node_.name(), "/fused");
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.device = node_.requested_device();
  spec.where = node_.where();
  Node* node = graph_.add(std::move(spec));
  if (uses_) uses_->added(node);
  if (target_) added_.push_back(node);
  return node;
}

Output RewriteContext::add_constant(const Array& value) {
  const OpDef& op = ops_.of_kind(NodeKind::kConst);
  return {add(op.name, {}, AttrMap{{"value", value}, {"dtype", value.dtype()}}), 0};
}

const Array* RewriteContext::constant(int i) const {
  const Node* producer = node_.inputs()[static_cast<std::size_t>(i)].node;
  if (producer->kind() != NodeKind::kConst) return nullptr;
  return producer->attr<std::shared_ptr<const Array>>("value").get();
}

bool RewriteContext::is_constant(int i, double value) const {
  const Array* a = constant(i);
  if (!a || a->num_elements() == 0) return false;
  switch (a->dtype()) {
    case DType::kFloat: return all_equal_to<float>(*a, value);
    case DType::kDouble: return all_equal_to<double>(*a, value);
    case DType::kInt32: return all_equal_to<std::int32_t>(*a, value);
    case DType::kInt64: return all_equal_to<std::int64_t>(*a, value);
    default: return false;
  }
}

bool RewriteContext::may_drop(int i) const {
  return passes::may_drop(node_.inputs()[static_cast<std::size_t>(i)]);
}

bool RewriteContext::replace_with_constant(const Array& value, int i) {
  const auto anchors = passes::anchors_of(node_.inputs()[static_cast<std::size_t>(i)]);
  if (!anchors) return false;
  const Output constant = add_constant(value);
  graph_.set_control_inputs(constant.node, *anchors);
  return replace_with(constant);
}

// Where not even the rank is known, an operand that broadcasts may still decide the shape.
bool RewriteContext::others_are_scalars(Output value) const {
  return std::all_of(node_.inputs().begin(), node_.inputs().end(), [&](const Output& in) {
    return in == value || in.node->output_shape(in.index) == PartialShape::scalar();
  });
}

bool RewriteContext::replace_with(Output value, int output) {
  if (value.node->output_dtype(value.index) != node_.output_dtype(output)) return false;
  // A value of another (or less well known) shape would change what users see.
  if (!(value.node->output_shape(value.index) == node_.output_shape(output))) return false;
  if (!node_.output_shape(output).has_rank() && !others_are_scalars(value)) return false;
  if (!target_accepts(&node_, value.node)) return false;
  if (replacements_) {
    replacements_->add({&node_, output}, value);
  } else {
    graph_.replace_uses({&node_, output}, value);
  }
  if (uses_) uses_->replaced({&node_, output}, value);
  if (output == 0) replacement_ = value;
  return true;
}

}  // namespace tandem
