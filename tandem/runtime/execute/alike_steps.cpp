#include "tandem/runtime/execute/alike_steps.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/placement/cost_model.h"

namespace tandem {
namespace {

// What takes longer than its launch is not worth the memory: results of steps that stand side by
// side are all there at once.
constexpr double kMaxBytes = 1 << 20;

// Gives no value to others but what it does to variables.
bool is_update(const Node& node) {
  const OpTraits& traits = node.op().traits;
  return traits.stateful && !traits.reads_only && !traits.keeps_state && node.num_outputs() == 0 &&
         !node.inputs().empty();
}

bool may_join(const Step& step) {
  const Node& node = *step.node;
  const OpTraits& traits = node.op().traits;
  if (node.kind() != NodeKind::kPlain) return false;
  // Kernels of every class hand values on, and launch nothing.
  const std::vector<const KernelDecl*>& kernels = step.kernels->candidates;
  if (std::any_of(kernels.begin(), kernels.end(), [](const KernelDecl* kernel) {
        return std::string_view(kernel->kernel_class) == "*";
      }))
    return false;
  if (is_update(node)) return true;
  // Fused ops, too, are elementwise if the result may lie where an input does.
  if (!traits.elementwise && traits.may_reuse == 0 && traits.joins == ReductionKind::kNothing)
    return false;
  double bytes = 0;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!node.output_shape(i).is_fully_known()) return false;
    bytes += CostModel::output_bytes(node, i);
  }
  return bytes <= kMaxBytes;
}

const PartialShape& shape_of(Output value) { return value.node->output_shape(value.index); }

// Whether inputs broadcast to the results alike. Sums differ in more than that: they have to have
// the same shapes.
bool broadcast_alike(const Node& a, const Node& b) {
  const bool is_sum = a.op().traits.joins != ReductionKind::kNothing;
  for (std::size_t i = 0; i < a.inputs().size(); ++i) {
    const Output in_a = a.inputs()[i], in_b = b.inputs()[i];
    if (in_a.node->output_dtype(in_a.index) != in_b.node->output_dtype(in_b.index)) return false;
    if (a.num_outputs() == 0) continue;
    const bool whole_a = !is_sum && shape_of(in_a) == a.output_shape(0);
    const bool whole_b = !is_sum && shape_of(in_b) == b.output_shape(0);
    if (whole_a != whole_b || (!whole_a && !(shape_of(in_a) == shape_of(in_b)))) return false;
  }
  return true;
}

bool alike(const Node& a, const Node& b) {
  return a.inputs().size() == b.inputs().size() && a.num_outputs() == b.num_outputs() &&
         a.attrs() == b.attrs() && broadcast_alike(a, b);
}

}  // namespace

std::vector<int> alike_steps(const std::vector<Step>& steps) {
  // A graph has few kinds of each op; in one that has many, the later ones stay where they are.
  constexpr std::size_t kMaxKinds = 64;
  struct Kind {
    const Node* first;
    int number;
  };
  std::unordered_map<const OpDef*, std::vector<Kind>> kinds;
  std::vector<int> result(steps.size(), -1);
  int count = 0;
  // Where it is equally far to the end from two kinds, that with the lower number comes first: what
  // reads variables before what changes them, so that no old value has to be kept for it.
  const auto first_update = static_cast<int>(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (!may_join(steps[s])) continue;
    const Node& node = *steps[s].node;
    std::vector<Kind>& of_op = kinds[&node.op()];
    const auto known = std::find_if(of_op.begin(), of_op.end(),
                                    [&](const Kind& kind) { return alike(*kind.first, node); });
    if (known != of_op.end()) {
      result[s] = known->number;
    } else if (of_op.size() < kMaxKinds) {
      result[s] = count++ + (is_update(node) ? first_update : 0);
      of_op.push_back({&node, result[s]});
    }
  }
  return result;
}

}  // namespace tandem
