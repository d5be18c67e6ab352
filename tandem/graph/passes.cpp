#include "tandem/graph/passes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/fusion_pass.h"
#include "tandem/graph/internal/attr_hash.h"
#include "tandem/graph/internal/pure_node.h"
#include "tandem/graph/internal/replacements.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/rewrite.h"

namespace tandem {

Evaluator::~Evaluator() = default;
SizesOfCalls::~SizesOfCalls() = default;
bool Evaluator::has_float_loops(const Node&) { return false; }

MutableFunction::MutableFunction(const Function& function) {
  copy(function.body(), function.args(), function.results(), function.control_results());
}

MutableFunction MutableFunction::clone() const {
  MutableFunction twin;
  twin.copy(graph, args, results, control_results);
  return twin;
}

void MutableFunction::copy(const Graph& from, const std::vector<Node*>& from_args,
                           const std::vector<Output>& from_results,
                           const std::vector<Node*>& from_control) {
  std::vector<Node*> map;
  graph = from.clone(&map);
  const auto twin = [&](const Node* n) { return map[static_cast<std::size_t>(n->id())]; };
  for (const Node* n : from_args) args.push_back(twin(n));
  for (const Output& r : from_results) results.push_back({twin(r.node), r.index});
  for (const Node* n : from_control) control_results.push_back(twin(n));
}

void MutableFunction::replace(Output from, Output to) {
  graph.replace_uses(from, to);
  for (Output& r : results) {
    if (r == from) r = to;
  }
}

namespace passes {
namespace {

constexpr std::size_t kLargestFolded = 10'000'000;
constexpr std::size_t kLargestGrown = 100'000;

const std::shared_ptr<const Array>* constant(const Node& node) {
  if (node.kind() != NodeKind::kConst) return nullptr;
  const AttrValue* value = node.attrs().find("value");
  return value ? value->get_if<std::shared_ptr<const Array>>() : nullptr;
}

// Known before anything is computed, so that nothing large is made for nothing. A value that is
// much larger than what it is made of (a filled array, initial values of variables) takes memory
// for as long as the graph lives, and is made quickly.
bool too_large_to_fold(const Node& node, std::size_t bytes_of_inputs) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const PartialShape& shape = node.output_shape(i);
    const std::size_t size = std::max<std::size_t>(dtype_size(node.output_dtype(i)), 1);
    const std::size_t largest =
        std::min(kLargestFolded, std::max(kLargestGrown, 2 * bytes_of_inputs));
    if (shape.is_fully_known() && static_cast<std::size_t>(shape.num_elements()) > largest / size)
      return true;
  }
  return false;
}

Node* add_constant(MutableFunction& f, const OpRegistry& ops, const std::string& name,
                   const Array& value) {
  Graph::NodeSpec spec;
  spec.op = &ops.of_kind(NodeKind::kConst);
  spec.name = name;
  spec.attrs = AttrMap{{"value", value}, {"dtype", value.dtype()}};
  return f.graph.add(std::move(spec));
}

}  // namespace

bool prune(MutableFunction& f) {
  std::vector<bool> needed(static_cast<std::size_t>(f.graph.id_limit()), false);
  std::vector<const Node*> pending;
  const auto need = [&](const Node* n) {
    if (!needed[static_cast<std::size_t>(n->id())]) {
      needed[static_cast<std::size_t>(n->id())] = true;
      pending.push_back(n);
    }
  };
  for (const Output& r : f.results) need(r.node);
  for (const Node* n : f.control_results) need(n);
  for (const Node* n : f.args) needed[static_cast<std::size_t>(n->id())] = true;
  while (!pending.empty()) {
    const Node* n = pending.back();
    pending.pop_back();
    for (const Output& in : n->inputs()) {
      if (in.node) need(in.node);
    }
    for (const Node* before : n->control_inputs()) need(before);
  }
  needed.flip();
  const std::size_t before = f.graph.num_nodes();
  f.graph.remove_if(needed);
  return f.graph.num_nodes() != before;
}

bool fold_constants(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator) {
  bool changed = false;
  Replacements replacements(f);
  for (Node* node : f.graph.topological_order()) {
    replacements.resolve_inputs(node);
    if (!is_pure(*node) || node->kind() != NodeKind::kPlain || node->inputs().empty() ||
        node->op().traits.keeps_state)
      continue;
    if (!node->control_inputs().empty()) continue;
    std::vector<Array> values;
    std::vector<Node*> after;  // constants of a branch or loop are tied to it, and so is the result
    for (const Output& in : node->inputs()) {
      const auto* value = constant(*in.node);
      if (!value) break;
      values.push_back(**value);
      for (Node* before : in.node->control_inputs()) {
        if (std::find(after.begin(), after.end(), before) == after.end()) after.push_back(before);
      }
    }
    if (values.size() != node->inputs().size()) continue;
    std::size_t bytes = 0;
    for (const Array& value : values) bytes += value.num_bytes();
    if (too_large_to_fold(*node, bytes)) continue;
    std::optional<std::vector<Array>> outputs;
    try {
      outputs = evaluator.evaluate(*node, values);
    } catch (const std::exception&) {
      continue;  // the error belongs to the run, where it names the node; a lack of memory, too
    }
    if (!outputs) continue;
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const Array& value = (*outputs)[i];
      if (is_object(value.dtype()) || value.num_bytes() > kLargestFolded) continue;
      Node* folded = add_constant(f, ops, node->name() + "/folded", value);
      f.graph.set_control_inputs(folded, after);
      replacements.add({node, static_cast<int>(i)}, {folded, 0});
      changed = true;
    }
  }
  replacements.finish();
  if (changed) prune(f);
  return changed;
}

namespace {

// Constants are compared bit by bit: 0 equals -0, but what is divided by them differs.
bool same_attrs(const Node& a, const Node& b) {
  if (a.kind() != NodeKind::kConst) return a.attrs() == b.attrs();
  const Array &x = **constant(a), &y = **constant(b);  // of one dtype and shape
  if (is_object(x.dtype())) return x == y;
  return std::memcmp(x.raw_data(), y.raw_data(), x.num_bytes()) == 0;
}

}  // namespace

namespace {

// In an order that does not matter where the op says so.
std::vector<Output> inputs_to_compare(const Node& node) {
  std::vector<Output> inputs = node.inputs();
  if (node.op().traits.commutative) {
    std::sort(inputs.begin(), inputs.end(), [](const Output& a, const Output& b) {
      return std::pair(a.node->id(), a.index) < std::pair(b.node->id(), b.index);
    });
  }
  return inputs;
}

std::size_t combined(std::size_t a, std::size_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
}

std::size_t hash_of_node(const Node& node) {
  std::size_t hash = std::hash<const OpDef*>()(&node.op());
  hash = combined(hash, std::hash<std::string>()(node.requested_device()));
  for (const Output& in : inputs_to_compare(node)) {
    hash = combined(hash, static_cast<std::size_t>(in.node->id()));
    hash = combined(hash, static_cast<std::size_t>(in.index));
  }
  for (const Node* before : node.control_inputs())
    hash = combined(hash, static_cast<std::size_t>(before->id()));
  return combined(
      hash, node.kind() == NodeKind::kConst ? hash_of(**constant(node)) : hash_of(node.attrs()));
}

bool computes_the_same(const Node& a, const Node& b) {
  if (&a.op() != &b.op() || a.requested_device() != b.requested_device() ||
      a.control_inputs() != b.control_inputs() || inputs_to_compare(a) != inputs_to_compare(b))
    return false;
  if (a.kind() == NodeKind::kConst) {
    const Array &x = **constant(a), &y = **constant(b);
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
  }
  return same_attrs(a, b);
}

}  // namespace

bool eliminate_common_subexpressions(MutableFunction& f) {
  constexpr std::size_t kLargestCompared = 4096;  // bytes of a constant
  std::unordered_multimap<std::size_t, Node*> seen;
  Replacements replacements(f);
  bool changed = false;
  for (Node* node : f.graph.topological_order()) {
    replacements.resolve_inputs(node);
    if (!is_pure(*node)) continue;
    if (node->kind() == NodeKind::kConst) {
      const auto* value = constant(*node);
      if (!value || (*value)->num_bytes() > kLargestCompared) continue;
    }
    const std::size_t hash = hash_of_node(*node);
    const auto [first, last] = seen.equal_range(hash);
    const auto twin = std::find_if(
        first, last, [&](const auto& entry) { return computes_the_same(*entry.second, *node); });
    if (twin == last) {
      seen.emplace(hash, node);
      continue;
    }
    for (int i = 0; i < node->num_outputs(); ++i) replacements.add({node, i}, {twin->second, i});
    changed = true;
  }
  replacements.finish();
  if (changed) prune(f);
  return changed;
}

namespace {

bool asks_for_one_device(const Graph& graph) {
  const std::string* asked = nullptr;
  for (const auto& node : graph.nodes()) {
    if (node->kind() == NodeKind::kConst || node->kind() == NodeKind::kArg) continue;
    if (asked && *asked != node->requested_device()) return false;
    asked = &node->requested_device();
  }
  return true;
}

// True if what the node computes from, as far back as one op may take in, is asked to be on the
// device that the node is.
bool is_on_one_device(const Node& node, const std::string& device, int far = 6) {
  if (node.kind() == NodeKind::kConst || node.kind() == NodeKind::kArg) return true;
  if (node.requested_device() != device) return false;
  return far == 0 || std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Output& in) {
           return !in.node || is_on_one_device(*in.node, device, far - 1);
         });
}

// Asks every op that has the hook, once.
bool rewrite(MutableFunction& f, const OpRegistry& ops, RewriteFn OpDef::*hook, UseCounts* uses,
             const OptimizerOptions& options) {
  bool changed = false;
  FusionTarget* const target = uses ? f.target : nullptr;
  const bool one_device = !uses || target || asks_for_one_device(f.graph);
  Replacements replacements(f);
  for (Node* node : f.graph.topological_order()) {
    replacements.resolve_inputs(node);
    const RewriteFn apply = node->op().*hook;
    if (!apply || !is_pure(*node) || !node->control_inputs().empty()) continue;
    // Who waits for the node keeps it: fused, it would be computed twice.
    if (uses && (uses->of(node) == 0 || uses->waiting_for(node) != 0)) continue;
    if (!one_device && !is_on_one_device(*node, node->requested_device())) continue;
    RewriteContext context(f.graph, ops, *node, uses, &options, &replacements, target);
    changed = (apply(context) && !context.refused()) || changed;
  }
  replacements.finish();
  if (changed) prune(f);
  return changed;
}

}  // namespace

bool simplify_arithmetic(MutableFunction& f, const OpRegistry& ops) {
  const bool changed = rewrite(f, ops, &OpDef::rewrite, nullptr, {});
  return simplify_control_edges(f, ops) || changed;
}

bool fuse(MutableFunction& f, const OpRegistry& ops, const OptimizerOptions& options) {
  // What a first round makes, a second may complete: constant weights are packed when all that
  // changes them is done.
  constexpr int kRounds = 3;
  bool changed = false;
  for (int round = 0; round < kRounds; ++round) {
    UseCounts uses(f);
    if (!rewrite(f, ops, &OpDef::fuse, &uses, options)) {
      prune(f);  // what was begun and given up
      break;
    }
    changed = true;
  }
  return changed;
}

}  // namespace passes

bool simplify(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
              const OptimizerOptions& options) {
  constexpr int kRounds = 4;
  bool ever = passes::prune(f);
  for (int round = 0; round < kRounds; ++round) {
    bool changed = options.constant_folding && passes::fold_constants(f, ops, evaluator);
    changed = (options.arithmetic_optimization && passes::simplify_arithmetic(f, ops)) || changed;
    changed = (options.common_subgraph_elimination && passes::eliminate_common_subexpressions(f)) ||
              changed;
    if (!changed) break;
    ever = true;
  }
  return passes::propagate_constant_control_inputs(f) || ever;
}

void optimize(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
              const OptimizerOptions& options) {
  simplify(f, ops, evaluator, options);
  if (options.remapping) passes::fuse(f, ops, options);
}

void fuse_ops(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
              const OptimizerOptions& options) {
  if (options.remapping) passes::fuse(f, ops, options);
  if (options.elementwise_fusion) passes::fuse_elementwise(f, ops, evaluator);
  passes::run_fusion_passes(f, ops, evaluator, options);
}

namespace {

void set_arg_shapes(MutableFunction& f, const std::vector<PartialShape>& shapes) {
  for (std::size_t i = 0; i < f.args.size(); ++i) {
    // A reference's own shape is not that of its variable.
    if (!is_ref(f.args[i]->output_dtype(0))) f.graph.set_output_shape(f.args[i], 0, shapes[i]);
  }
  f.graph.infer_shapes_to_run();
}

}  // namespace

void specialize(MutableFunction& f, const std::vector<PartialShape>& arg_shapes,
                const OpRegistry& ops, Evaluator& evaluator, const OptimizerOptions& options,
                SizesOfCalls* sizes) {
  set_arg_shapes(f, arg_shapes);
  // What shapes are computed from may be constant only now: axes of sums, sizes of reshapes.
  if (simplify(f, ops, evaluator, options)) f.graph.infer_shapes_to_run();
  optimize(f, ops, evaluator, options);
  if (options.arithmetic_optimization) passes::sink_broadcasts(f, ops);
  if (options.elementwise_fusion) {
    // What is fused follows from which shapes are equal; what it computes, from the operands.
    if (sizes) {
      sizes->look_at(f);
      set_arg_shapes(f, sizes->stand_ins());
    }
    passes::fuse_elementwise(f, ops, evaluator, sizes);
    if (sizes) set_arg_shapes(f, arg_shapes);
  }
  passes::run_fusion_passes(f, ops, evaluator, options);
}

}  // namespace tandem
