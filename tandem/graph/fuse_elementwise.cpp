// Chains and trees of elementwise ops become one op that goes through memory once, or, under a sum
// over all axes but the last, one that writes nothing but the sums. A value that is written and
// whose sums, or those of what follows from it, others want is gone through once for all of them.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/fusion_target.h"
#include "tandem/graph/internal/elementwise_program.h"
#include "tandem/graph/internal/fusible.h"
#include "tandem/graph/internal/row_sums.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"

namespace tandem::passes {
namespace {

constexpr std::size_t kMaxOps = 24;

class Fuser {
 public:
  Fuser(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator, SizesOfCalls* sizes)
      : f_(f), ops_(ops), evaluator_(evaluator), sizes_(sizes), uses_(f) {}

  bool run() {
    const std::vector<Node*> order = f_.graph.topological_order();
    position_.resize(static_cast<std::size_t>(f_.graph.id_limit()));
    taken_.resize(position_.size());
    for (std::size_t i = 0; i < order.size(); ++i) position_[index(order[i])] = i;
    bool changed = false;
    sums_.resize(position_.size());
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      if (taken(*node) || uses_.of(*node) == 0) continue;
      if (try_sum(*node) || try_tree(*node)) {
        changed = true;
      } else if (is_row_sum(**node)) {
        note_sum(*node);
      }
    }
    if (changed || f_.target) prune(f_);
    return changed;
  }

 private:
  struct Group {
    std::vector<Node*> members;
  };

  static std::size_t index(const Node* node) { return static_cast<std::size_t>(node->id()); }
  // Nodes that this pass has added are never part of another group.
  bool taken(const Node* node) const { return index(node) >= taken_.size() || taken_[index(node)]; }

  bool large(const Node& node) {
    using Elementwise = FusionTarget::Elementwise;
    if (f_.target && f_.target->elementwise(node) == Elementwise::kAnySize) return true;
    return sizes_ ? sizes_->is_large(node) : is_large(node.output_shape(0));
  }

  bool together(const Node& a, const Node& b) const {
    return f_.target ? f_.target->together(a, b) : a.requested_device() == b.requested_device();
  }

  bool fusible(const Node& node) {
    using Elementwise = FusionTarget::Elementwise;
    const Elementwise wanted = f_.target ? f_.target->elementwise(node) : Elementwise::kLarge;
    if (wanted == Elementwise::kNo) return false;
    // Devices for which a launch costs time say themselves what they fuse, and `accepts` of what
    // types. The kernel of CPUs has no loops for double.
    return is_fusible(node, evaluator_) ||
           (wanted == Elementwise::kAnySize && is_fusible_in_double(node));
  }

  // A value of 16 bits as float. Reading the short one and widening it on the way is cheaper than
  // reading what somebody has widened, so everybody does it for himself.
  bool widens(const Node& node) {
    if (node.inputs().size() != 1) return false;
    const Output& in = node.inputs()[0];
    return node.output_dtype(0) == DType::kFloat &&
           in.node->output_dtype(in.index) != DType::kFloat && node.control_inputs().empty() &&
           fusible(node);
  }

  // All that can be computed along with `root`, element by element of a value of its shape: what
  // nothing else reads, and what each reader widens for itself.
  Group grow(Node* root, const PartialShape& shape) {
    Group group{{root}};
    struct Uses {
      Node* node = nullptr;
      int values = 0;
      int waits = 0;  // members that wait for it
    };
    std::map<int, Uses> inner_uses;  // by id: the choice is the same in each run
    const auto count_uses = [&](const Node* user) {
      for (const Output& in : value_inputs(*user)) {
        Uses& uses = inner_uses[in.node->id()];
        uses.node = in.node;
        ++uses.values;
      }
      for (Node* before : user->control_inputs()) {
        Uses& uses = inner_uses[before->id()];
        uses.node = before;
        ++uses.waits;
      }
    };
    const auto joins = [&](Node* node) {
      return node->num_outputs() == 1 && !taken(node) && node->output_shape(0) == shape &&
             together(*node, *root) &&
             std::find(group.members.begin(), group.members.end(), node) == group.members.end();
    };
    // What a root that stays for others reads is not the group's alone.
    if (uses_.of(root) <= 1 || !widens(*root)) count_uses(root);
    for (bool grown = true; grown && group.members.size() < kMaxOps;) {
      grown = false;
      for (const auto& [id, use] : inner_uses) {
        Node* node = use.node;
        if (use.values == 0 || uses_.of(node) != use.values + use.waits || !joins(node) ||
            !fusible(*node))
          continue;
        group.members.push_back(node);
        count_uses(node);
        grown = true;
        break;
      }
    }
    for (const auto& [id, use] : inner_uses) {
      if (use.values != 0 && group.members.size() < kMaxOps && joins(use.node) && widens(*use.node))
        group.members.push_back(use.node);
    }
    return group;
  }

  ElementwiseProgram program_of(Group& group) {
    ElementwiseProgram program;
    std::map<const Node*, std::int64_t> results;
    std::sort(group.members.begin(), group.members.end(), [&](const Node* a, const Node* b) {
      return position_[index(a)] < position_[index(b)];
    });
    for (const Node* node : group.members) {
      const std::vector<Output> values = value_inputs(*node);
      program.operands.push_back(static_cast<std::int64_t>(values.size()));
      for (const Output& in : values) {
        const auto inner = results.find(in.node);
        program.operands.push_back(inner != results.end() ? inner->second : program.input(in));
      }
      program.ops.push_back(node->op().name);
      results[node] = program.last();
    }
    return program;
  }

  // The node that computes the group whose root this is, and `others`; null if their device cannot
  // run it.
  Node* add(Node* root, const Group& group, const char* op, std::vector<Output> inputs,
            AttrMap attrs, const std::vector<Node*>& others = {}) {
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
    if (f_.target) {
      std::vector<const Node*> replaced(group.members.begin(), group.members.end());
      if (std::find(replaced.begin(), replaced.end(), root) == replaced.end())
        replaced.push_back(root);
      replaced.insert(replaced.end(), others.begin(), others.end());
      if (!f_.target->accepts({&fused, 1}, replaced)) return nullptr;  // pruned, as nothing uses it
    }
    uses_.added(fused);
    return fused;
  }

  void replace(Node* node, Output fused) {
    if (!(fused.node->output_shape(fused.index) == node->output_shape(0)))
      f_.graph.set_output_shape(fused.node, fused.index, node->output_shape(0));
    f_.replace({node, 0}, fused);
    uses_.replaced({node, 0}, fused);
    if (!taken(node)) taken_[index(node)] = true;
  }

  void take(const Group& group) {
    for (const Node* node : group.members)
      if (uses_.of(node) == 0) taken_[index(node)] = true;
  }

  bool try_tree(Node* root) {
    if (!fusible(*root) || uses_.waiting_for(root) != 0) return false;
    const PartialShape& shape = root->output_shape(0);
    if (!large(*root)) return false;
    Group group = grow(root, shape);
    ElementwiseProgram program = program_of(group);
    if (try_sums_along(root, group, program)) return true;
    if (group.members.size() < 2 || !program.can_run(shape)) return false;
    AttrMap attrs{{"T", root->output_dtype(0)}};
    program.write(attrs);
    Node* fused = add(root, group, "_FusedElementwise", program.inputs, std::move(attrs));
    if (!fused) return false;
    replace(root, {fused, 0});
    take(group);
    return true;
  }

  // Sums whose operand is a value that is there anyway, or follows from it element by element.
  void note_sum(Node* sum) {
    for (const Output& in : sum->inputs()) {
      if (index(in.node) < sums_.size()) sums_[index(in.node)].push_back(sum);
    }
  }

  // Computes the sums of rows that depend on the root together with it, where others read it too.
  bool try_sums_along(Node* root, const Group& group, const ElementwiseProgram& values) {
    const PartialShape& shape = root->output_shape(0);
    if (!shape.is_fully_known() || !has_row_sums(shape)) return false;
    ElementwiseProgram program = values;
    std::vector<Node*> sums;
    std::vector<std::int64_t> results{program.last()}, ranks;
    for (Node* sum : sums_[index(root)]) {
      if (!may_go_along(*sum, *root, shape)) continue;
      if (!sums.empty() && sum->output_dtype(0) != sums[0]->output_dtype(0)) continue;
      ElementwiseProgram more = program;
      const std::int64_t result = append_sum(*sum, {root, 0}, results[0], more);
      if (more.ops.size() > kMaxOps || !more.can_run(shape)) continue;
      program = std::move(more);
      results.push_back(result);
      ranks.push_back(sum->output_shape(0).rank());
      sums.push_back(sum);
    }
    const auto own_uses = [&] {
      int count = 0;
      for (const Node* sum : sums) {
        for (const Output& in : sum->inputs()) count += in.node == root ? 1 : 0;
      }
      return count;
    };
    if (sums.empty() || uses_.of(root) <= own_uses()) return false;
    AttrMap attrs{{"T", root->output_dtype(0)},
                  {"Tsum", sums[0]->output_dtype(0)},
                  {"num_sums", static_cast<std::int64_t>(sums.size())}};
    attrs.set("results", std::move(results));
    attrs.set("sum_ranks", std::move(ranks));
    program.write(attrs);
    Node* fused = add(root, group, "_FusedElementwiseSums", program.inputs, std::move(attrs), sums);
    if (!fused) return false;
    for (std::size_t i = 0; i < sums.size(); ++i)
      replace(sums[i], {fused, static_cast<int>(i) + 1});
    replace(root, {fused, 0});
    take(group);
    return true;
  }

  // Whether all else that the sum reads is there before the root, and no larger.
  bool may_go_along(const Node& sum, const Node& root, const PartialShape& shape) const {
    if (uses_.of(&sum) == 0 || uses_.waiting_for(&sum) != 0 || !sum.control_inputs().empty() ||
        !together(sum, root) || !sum.output_shape(0).has_rank())
      return false;
    PartialShape all = shape;
    for (const Output& in : summed_by(sum)) {
      if (in.node != &root && (index(in.node) >= position_.size() ||
                               position_[index(in.node)] >= position_[index(&root)]))
        return false;
      all = broadcast(all, in.node->output_shape(in.index));
    }
    return all == shape;
  }

  bool try_sum(Node* root) {
    const ReductionKind joins = root->op().traits.joins;
    if ((joins != ReductionKind::kSum && joins != ReductionKind::kMean) ||
        uses_.waiting_for(root) != 0 || !is_fusible_sum_dtype(root->output_dtype(0)) ||
        root->kind() != NodeKind::kPlain)
      return false;
    const Output in = root->inputs()[0];
    if (taken(in.node) || in.node->num_outputs() != 1 ||
        !(uses_.of(in.node) == 1 ? fusible(*in.node) : widens(*in.node)))
      return false;
    const PartialShape& shape = in.node->output_shape(0);
    if (!large(*in.node) || !all_axes_but_last(*root, shape.rank()) || !has_row_sums(shape))
      return false;
    Group group = grow(in.node, shape);
    const ElementwiseProgram program = program_of(group);
    if (!program.can_run(shape)) return false;
    const bool mean = joins == ReductionKind::kMean, keep = root->attr<bool>("keep_dims");
    AttrMap attrs{{"T", root->output_dtype(0)}, {"mean", mean}, {"keep_dims", keep}};
    program.write(attrs);
    Node* fused = add(root, group, "_FusedSum", program.inputs, std::move(attrs));
    if (!fused) return false;
    replace(root, {fused, 0});
    take(group);
    if (!mean) note_sum(fused);
    return true;
  }

  MutableFunction& f_;
  const OpRegistry& ops_;
  Evaluator& evaluator_;
  SizesOfCalls* sizes_;  // null: the shapes say which values are large
  UseCounts uses_;
  std::vector<std::size_t> position_;  // by node id
  std::vector<bool> taken_;
  std::vector<std::vector<Node*>> sums_;  // by node id: sums of rows of what reads its value
};

}  // namespace

bool fuse_elementwise(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                      SizesOfCalls* sizes) {
  return Fuser(f, ops, evaluator, sizes).run();
}

}  // namespace tandem::passes
