#include "tandem/runtime/execute/alike_steps.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/placement/cost_model.h"

namespace tandem {
namespace {

// What takes longer than its launch is not worth the memory: what steps that stand side by side
// read and write is all there at once.
constexpr double kMaxBytes = 4 << 20;
constexpr double kMaxBytesOfKind = 64 << 20;

// Gives no value to others but what it does to variables.
bool is_update(const Node& node) {
  const OpTraits& traits = node.op().traits;
  return traits.stateful && !traits.reads_only && !traits.keeps_state && node.num_outputs() == 0 &&
         !node.inputs().empty();
}

// What the step reads and writes; infinite if that is not known.
double bytes_of(const Node& node) {
  double bytes = 0;
  const auto add = [&](const Node& maker, int output) {
    bytes += maker.output_shape(output).is_fully_known() ? CostModel::output_bytes(maker, output)
                                                         : std::numeric_limits<double>::infinity();
  };
  for (int i = 0; i < node.num_outputs(); ++i) add(node, i);
  for (const Output& in : node.inputs()) add(*in.node, in.index);
  return bytes;
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
  const bool elementwise = traits.elementwise || traits.may_reuse != 0;
  return (elementwise || traits.joins != ReductionKind::kNothing) && bytes_of(node) <= kMaxBytes;
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
    double bytes = 0;
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
    const double bytes = is_update(node) ? 0 : bytes_of(node);
    auto kind = std::find_if(of_op.begin(), of_op.end(), [&](const Kind& known) {
      return known.bytes + bytes <= kMaxBytesOfKind && alike(*known.first, node);
    });
    if (kind == of_op.end()) {
      if (of_op.size() == kMaxKinds) continue;
      of_op.push_back({&node, count++ + (is_update(node) ? first_update : 0)});
      kind = std::prev(of_op.end());
    }
    kind->bytes += bytes;
    result[s] = kind->number;
  }
  return result;
}

}  // namespace tandem
