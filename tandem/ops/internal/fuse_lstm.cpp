#include "tandem/ops/internal/fuse_lstm.h"

#include <memory>
#include <optional>
#include <string_view>

#include "tandem/graph/rewrite.h"

namespace tandem::internal {
namespace {

bool is(const Output& o, std::string_view op) {
  return o.index == 0 && o.node->op().name == op && o.node->control_inputs().empty();
}

// The one input of such a node that nothing else reads.
std::optional<Output> under(const RewriteContext& r, const Output& o, std::string_view op) {
  if (!is(o, op) || r.uses().of(o.node) != 1) return std::nullopt;
  return o.node->inputs()[0];
}

// A product of sigmoid(gate) and something else, whichever comes first.
struct Gated {
  Output gate, value;
};
std::optional<Gated> gated(const RewriteContext& r, const Node& mul) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (const auto gate = under(r, mul.inputs()[i], "Sigmoid"))
      return Gated{*gate, mul.inputs()[1 - i]};
  }
  return std::nullopt;
}

bool splits_into_four_columns(const RewriteContext& r, const Node& split) {
  if (split.op().name != "Split" || !split.control_inputs().empty() || split.num_outputs() != 4)
    return false;
  for (int i = 0; i < 4; ++i)
    if (r.uses().of(Output{const_cast<Node*>(&split), i}) != 1) return false;
  const Output axis = split.inputs()[0], gates = split.inputs()[1];
  const PartialShape& shape = gates.node->output_shape(gates.index);
  if (axis.node->kind() != NodeKind::kConst || !shape.has_rank() || shape.rank() != 2) return false;
  const auto value = *axis.node->attr<std::shared_ptr<const Array>>("value");
  const std::int32_t at = *value.data<std::int32_t>();
  return at == 1 || at == -1;
}

}  // namespace

// output = sigmoid(g3) * tanh(c), c = sigmoid(g1) * cell + sigmoid(g0) * tanh(g2)
bool fuse_lstm(RewriteContext& r) {
  const Node& root = r.node();
  const auto output = gated(r, root);
  if (!output || root.output_dtype(0) != DType::kFloat || output->gate.index != 3) return false;
  const auto new_cell = under(r, output->value, "Tanh");
  if (!new_cell || !(is(*new_cell, "AddV2") || is(*new_cell, "Add"))) return false;
  const Node* split = output->gate.node;
  if (!splits_into_four_columns(r, *split)) return false;
  std::optional<Output> cell;
  bool takes_in = false;
  for (const Output& term : new_cell->node->inputs()) {
    if (!is(term, "Mul") || r.uses().of(term.node) != 1) return false;
    const auto part = gated(r, *term.node);
    if (!part || part->gate.node != split) return false;
    if (part->gate.index == 1) {
      cell = part->value;
    } else if (part->gate.index == 0) {
      const auto candidate = under(r, part->value, "Tanh");
      takes_in = candidate && candidate->node == split && candidate->index == 2;
    }
  }
  if (!cell || !takes_in) return false;
  Node* fused = r.add("_LstmGates", {split->inputs()[1], *cell}, {});
  r.graph().set_output_shape(fused, 0, new_cell->node->output_shape(0));
  r.graph().set_output_shape(fused, 1, root.output_shape(0));
  r.replace(*new_cell, {fused, 0});
  r.replace({&r.node(), 0}, {fused, 1});
  return true;
}

}  // namespace tandem::internal
