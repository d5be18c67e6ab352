#include "tandem/ops/internal/fuse_recurrent.h"

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

bool splits_columns(const RewriteContext& r, const Node& split, int parts) {
  if (split.op().name != "Split" || !split.control_inputs().empty() ||
      split.num_outputs() != parts || split.output_dtype(0) != DType::kFloat)
    return false;
  for (int i = 0; i < parts; ++i)
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
  if (!splits_columns(r, *split, 4)) return false;
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

namespace {

// A sum of part i of two splits, in either order.
struct Parts {
  const Node* of_input;
  const Node* of_state;
};

bool sums_parts(const Output& sum, const Parts& splits, int i) {
  if (!is(sum, "AddV2") && !is(sum, "Add")) return false;
  const auto& in = sum.node->inputs();
  const auto part = [&](const Output& o, const Node* split) {
    return o.node == split && o.index == i;
  };
  return (part(in[0], splits.of_input) && part(in[1], splits.of_state)) ||
         (part(in[1], splits.of_input) && part(in[0], splits.of_state));
}

bool is_one(const Output& o) {
  if (o.node->kind() != NodeKind::kConst) return false;
  const Array& value = *o.node->attr<std::shared_ptr<const Array>>("value");
  return value.dtype() == DType::kFloat && value.num_elements() == 1 &&
         *value.data<float>() == 1.0f;
}

}  // namespace

// output = z * state + (1 - z) * tanh(x2 + sigmoid(x1 + h1) * h2), z = sigmoid(x0 + h0)
bool fuse_gru(RewriteContext& r) {
  const auto& terms = r.node().inputs();
  if (r.node().output_dtype(0) != DType::kFloat) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const Output keep = terms[i], take = terms[1 - i];
    if (!is(keep, "Mul") || !is(take, "Mul") || r.uses().of(keep.node) != 1 ||
        r.uses().of(take.node) != 1)
      continue;
    for (std::size_t j = 0; j < 2; ++j) {
      const Output rest = take.node->inputs()[j], candidate = take.node->inputs()[1 - j];
      if (!is(rest, "Sub") || r.uses().of(rest.node) != 1 || !is_one(rest.node->inputs()[0]))
        continue;
      const Output z = rest.node->inputs()[1];
      if (!is(z, "Sigmoid") || r.uses().of(z.node) != 2) continue;
      const auto& kept = keep.node->inputs();
      if (!(kept[0] == z) && !(kept[1] == z)) continue;
      const Output state = kept[0] == z ? kept[1] : kept[0];

      const auto sum = under(r, candidate, "Tanh");
      if (!sum || !(is(*sum, "AddV2") || is(*sum, "Add")) || r.uses().of(sum->node) != 1) continue;
      for (std::size_t k = 0; k < 2; ++k) {
        const Output x2 = sum->node->inputs()[k], reset = sum->node->inputs()[1 - k];
        if (x2.index != 2 || !is(reset, "Mul") || r.uses().of(reset.node) != 1) continue;
        const auto part = gated(r, *reset.node);
        if (!part || part->value.index != 2) continue;
        const Parts splits{x2.node, part->value.node};
        if (splits.of_input == splits.of_state || !splits_columns(r, *splits.of_input, 3) ||
            !splits_columns(r, *splits.of_state, 3) || !sums_parts(part->gate, splits, 1) ||
            !sums_parts(z.node->inputs()[0], splits, 0) || r.uses().of(part->gate.node) != 1 ||
            r.uses().of(z.node->inputs()[0].node) != 1)
          continue;
        Node* fused = r.add(
            "_GruGates", {splits.of_input->inputs()[1], splits.of_state->inputs()[1], state}, {});
        r.graph().set_output_shape(fused, 0, r.node().output_shape(0));
        r.replace({&r.node(), 0}, {fused, 0});
        return true;
      }
    }
  }
  return false;
}

}  // namespace tandem::internal
