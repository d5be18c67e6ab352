// Chains and trees of elementwise ops become one op that goes through memory once, or, under a sum
// over all axes but the last, one that writes nothing but the sums.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/fusible.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"

namespace tandem::passes {
namespace {

constexpr std::size_t kMostOps = 24;
constexpr std::size_t kMostInputs = 24;
// Below this the bookkeeping of a fused op costs more than the passes through memory that it saves.
constexpr std::int64_t kFewestElements = 4096;
constexpr std::int64_t kLargestLastAxis = 8192;

std::int64_t known_elements(const PartialShape& shape) {
  if (!shape.has_rank()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) return 0;
    if (dim > 0) count = std::min(count, kFewestElements) * std::min(dim, kFewestElements);
  }
  return count;
}

class Fuser {
 public:
  Fuser(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator)
      : f_(f), ops_(ops), evaluator_(evaluator), uses_(f) {}

  bool run() {
    const std::vector<Node*> order = f_.graph.topological_order();
    position_.resize(static_cast<std::size_t>(f_.graph.id_limit()));
    taken_.resize(position_.size());
    for (std::size_t i = 0; i < order.size(); ++i) position_[index(order[i])] = i;
    bool changed = false;
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (!taken(*node) && uses_.of(*node) != 0)
        changed = try_sum(*node) || try_tree(*node) || changed;
    }
    if (changed) prune(f_);
    return changed;
  }

 private:
  struct Group {
    std::vector<Node*> members;
  };

  static std::size_t index(const Node* node) { return static_cast<std::size_t>(node->id()); }
  // Nodes that this pass has added are never part of another group.
  bool taken(const Node* node) const { return index(node) >= taken_.size() || taken_[index(node)]; }

  bool fusible(const Node& node) { return is_fusible(node, evaluator_); }

  // A bfloat16 value as float. Reading the short one and widening it on the way is cheaper than
  // reading what somebody has widened, so everybody does it for himself.
  bool widens(const Node& node) {
    return node.inputs().size() == 1 && node.output_dtype(0) == DType::kFloat &&
           node.inputs()[0].node->output_dtype(node.inputs()[0].index) == DType::kBFloat16 &&
           node.control_inputs().empty() && fusible(node);
  }

  // All that can be computed along with `root`, element by element of a value of its shape: what
  // nobody else reads, and what everybody widens for himself.
  Group grow(Node* root, const PartialShape& shape) {
    Group group{{root}};
    std::map<int, std::pair<Node*, int>> inner_uses;  // by id: the choice is the same in each run
    const auto count_uses = [&](const Node* user) {
      for (const Output& in : value_inputs(*user)) {
        auto& [node, count] = inner_uses[in.node->id()];
        node = in.node;
        ++count;
      }
    };
    const auto joins = [&](Node* node) {
      return node->num_outputs() == 1 && !taken(node) && node->output_shape(0) == shape &&
             node->requested_device() == root->requested_device() &&
             std::find(group.members.begin(), group.members.end(), node) == group.members.end();
    };
    // What a root that stays for others reads is not the group's alone.
    if (uses_.of(root) <= 1 || !widens(*root)) count_uses(root);
    for (bool grown = true; grown && group.members.size() < kMostOps;) {
      grown = false;
      for (const auto& [id, use] : inner_uses) {
        const auto [node, count] = use;
        if (uses_.of(node) != count || !joins(node) || !fusible(*node)) continue;
        group.members.push_back(node);
        count_uses(node);
        grown = true;
        break;
      }
    }
    for (const auto& [id, use] : inner_uses) {
      if (group.members.size() < kMostOps && joins(use.first) && widens(*use.first))
        group.members.push_back(use.first);
    }
    return group;
  }

  // The group as a program: attributes and inputs. Empty inputs if it cannot be one.
  std::vector<Output> write(Group& group, AttrMap& attrs) {
    std::vector<Output> inputs;
    std::vector<std::string> names;
    std::vector<std::int64_t> operand_numbers;
    std::map<const Node*, std::int64_t> results;
    std::sort(group.members.begin(), group.members.end(), [&](const Node* a, const Node* b) {
      return position_[index(a)] < position_[index(b)];
    });
    for (const Node* node : group.members) {
      const std::vector<Output> values = value_inputs(*node);
      names.push_back(node->op().name);
      operand_numbers.push_back(static_cast<std::int64_t>(values.size()));
      for (const Output& in : values) {
        if (const auto inner = results.find(in.node); inner != results.end()) {
          operand_numbers.push_back(-1 - inner->second);
          continue;
        }
        const auto known = std::find(inputs.begin(), inputs.end(), in);
        operand_numbers.push_back(known - inputs.begin());
        if (known == inputs.end()) inputs.push_back(in);
      }
      results[node] = static_cast<std::int64_t>(names.size()) - 1;
    }
    if (inputs.size() > kMostInputs) return {};
    attrs.set("ops", std::move(names));
    attrs.set("operands", std::move(operand_numbers));
    std::vector<DType> types;
    for (const Output& in : inputs) types.push_back(in.node->output_dtype(in.index));
    attrs.set("Tin", std::move(types));
    return inputs;
  }

  // Whether the inputs alone have the shape of the result.
  static bool covers(const std::vector<Output>& inputs, const PartialShape& shape) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Output& in) { return in.node->output_shape(in.index) == shape; });
  }

  bool replace(Node* root, const Group& group, const char* op, std::vector<Output> inputs,
               AttrMap attrs) {
    Graph::NodeSpec spec;
    spec.op = &ops_.get(op);
    spec.name = cat(root->name(), "/fused");
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.device = root->requested_device();
    spec.where = root->where();
    // What members wait for does not depend on the group: all that reads a member is in it, or
    // reads a copy that stays.
    const auto wait_as = [&](const Node* node) {
      for (Node* before : node->control_inputs()) {
        if (before != root &&
            std::find(group.members.begin(), group.members.end(), before) == group.members.end() &&
            std::find(spec.control_inputs.begin(), spec.control_inputs.end(), before) ==
                spec.control_inputs.end())
          spec.control_inputs.push_back(before);
      }
    };
    for (const Node* node : group.members) wait_as(node);
    wait_as(root);
    Node* fused = f_.graph.add(std::move(spec));
    if (!(fused->output_shape(0) == root->output_shape(0)))
      f_.graph.set_output_shape(fused, 0, root->output_shape(0));
    f_.replace({root, 0}, {fused, 0});
    uses_.added(fused);
    uses_.replaced({root, 0}, {fused, 0});
    for (const Node* node : group.members)
      if (uses_.of(node) == 0) taken_[index(node)] = true;
    taken_[index(root)] = true;
    return true;
  }

  bool try_tree(Node* root) {
    if (!fusible(*root) || uses_.waiting_for(root) != 0) return false;
    const PartialShape& shape = root->output_shape(0);
    if (known_elements(shape) < kFewestElements) return false;
    Group group = grow(root, shape);
    if (group.members.size() < 2) return false;
    AttrMap attrs{{"T", root->output_dtype(0)}};
    std::vector<Output> inputs = write(group, attrs);
    if (inputs.empty() || !covers(inputs, shape)) return false;
    return replace(root, group, "_FusedElementwise", std::move(inputs), std::move(attrs));
  }

  bool try_sum(Node* root) {
    const Joins joins = root->op().traits.joins;
    if (joins == Joins::kNothing || uses_.waiting_for(root) != 0 ||
        !is_fusible_dtype(root->output_dtype(0)) || root->kind() != NodeKind::kPlain)
      return false;
    const Output in = root->inputs()[0];
    if (taken(in.node) || in.node->num_outputs() != 1 ||
        !(uses_.of(in.node) == 1 ? fusible(*in.node) : widens(*in.node)))
      return false;
    const PartialShape& shape = in.node->output_shape(0);
    if (known_elements(shape) < kFewestElements || !all_axes_but_last(*root, shape.rank()) ||
        shape.dim(shape.rank() - 1) < 1 || shape.dim(shape.rank() - 1) > kLargestLastAxis)
      return false;
    Group group = grow(in.node, shape);
    AttrMap attrs{{"T", root->output_dtype(0)},
                  {"mean", joins == Joins::kMean},
                  {"keep_dims", root->attr<bool>("keep_dims")}};
    std::vector<Output> inputs = write(group, attrs);
    if (inputs.empty() || !covers(inputs, shape)) return false;
    return replace(root, group, "_FusedSum", std::move(inputs), std::move(attrs));
  }

  static bool all_axes_but_last(const Node& node, int rank) {
    const Node* axes = node.inputs()[1].node;
    if (axes->kind() != NodeKind::kConst || rank < 2) return false;
    const Array& value = *axes->attr<std::shared_ptr<const Array>>("value");
    std::vector<bool> named(static_cast<std::size_t>(rank), false);
    for (std::int64_t i = 0; i < value.num_elements(); ++i) {
      std::int64_t axis = value.dtype() == DType::kInt32 ? value.data<std::int32_t>()[i]
                                                         : value.data<std::int64_t>()[i];
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank - 1) return false;
      named[static_cast<std::size_t>(axis)] = true;
    }
    return std::count(named.begin(), named.end(), true) == rank - 1;
  }

  MutableFunction& f_;
  const OpRegistry& ops_;
  Evaluator& evaluator_;
  UseCounts uses_;
  std::vector<std::size_t> position_;  // by node id
  std::vector<bool> taken_;
};

}  // namespace

bool fuse_elementwise(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator) {
  return Fuser(f, ops, evaluator).run();
}

}  // namespace tandem::passes
