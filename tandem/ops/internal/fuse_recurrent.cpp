#include "tandem/ops/internal/fuse_recurrent.h"

#include <array>
#include <cstdint>
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

// Whether the value is a matrix of so many columns. Rows may be one for all: the steps repeat it.
bool has_columns(const Output& o, std::int64_t columns) {
  const PartialShape& shape = o.node->output_shape(o.index);
  return shape.has_rank() && shape.rank() == 2 && shape.dim(1) == columns;
}

// The columns of one of `groups` groups; -1 if that is not known.
std::int64_t units_of(const Output& o, std::int64_t groups) {
  const PartialShape& shape = o.node->output_shape(o.index);
  if (!shape.has_rank() || shape.rank() != 2 || shape.dim(1) <= 0 || shape.dim(1) % groups != 0)
    return -1;
  return shape.dim(1) / groups;
}

bool splits_columns(const RewriteContext& r, const Node& split, int parts) {
  if (split.op().name != "Split" || !split.control_inputs().empty() ||
      split.num_outputs() != parts || split.output_dtype(0) != DType::kFloat)
    return false;
  for (int i = 0; i < parts; ++i)
    if (r.uses().of(Output{const_cast<Node*>(&split), i}) != 1) return false;
  const Output axis = split.inputs()[0];
  if (axis.node->kind() != NodeKind::kConst || units_of(split.inputs()[1], parts) < 0) return false;
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
  if (!cell || !takes_in || !has_columns(*cell, units_of(split->inputs()[1], 4))) return false;
  Node* fused = r.add("_LstmGates", {split->inputs()[1], *cell}, {});
  r.graph().set_output_shape(fused, 0, new_cell->node->output_shape(0));
  r.graph().set_output_shape(fused, 1, root.output_shape(0));
  r.replace(*new_cell, {fused, 0});
  r.replace({&r.node(), 0}, {fused, 1});
  return true;
}

namespace {

// Two whole numbers of a constant.
std::optional<std::array<std::int64_t, 2>> two_numbers(const Output& o) {
  if (o.node->kind() != NodeKind::kConst) return std::nullopt;
  const Array& value = *o.node->attr<std::shared_ptr<const Array>>("value");
  if (value.num_elements() != 2) return std::nullopt;
  if (value.dtype() == DType::kInt64)
    return std::array{value.data<std::int64_t>()[0], value.data<std::int64_t>()[1]};
  if (value.dtype() != DType::kInt32) return std::nullopt;
  return std::array<std::int64_t, 2>{value.data<std::int32_t>()[0], value.data<std::int32_t>()[1]};
}

// One of the three groups of a value's columns, which nothing else reads.
struct Group {
  Output of;
  int index;
  bool operator==(const Group&) const = default;
};

// of[:, index * units : (index + 1) * units]
std::optional<Group> sliced_group(const RewriteContext& r, const Output& o) {
  if (!is(o, "StridedSlice") || r.uses().of(o.node) != 1) return std::nullopt;
  const Node& slice = *o.node;
  const Output of = slice.inputs()[0];
  const std::int64_t units = units_of(of, 3);
  if (slice.output_dtype(0) != DType::kFloat || units < 0) return std::nullopt;
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    if (slice.attr<std::int64_t>(mask) != 0) return std::nullopt;
  const std::int64_t no_begin = slice.attr<std::int64_t>("begin_mask");
  const std::int64_t no_end = slice.attr<std::int64_t>("end_mask");
  const auto begin = two_numbers(slice.inputs()[1]), end = two_numbers(slice.inputs()[2]);
  const auto step = two_numbers(slice.inputs()[3]);
  if ((no_begin & no_end & 1) == 0 || !begin || !end || step != std::array<std::int64_t, 2>{1, 1})
    return std::nullopt;
  const std::int64_t first = (no_begin & 2) != 0 ? 0 : (*begin)[1];
  const std::int64_t last = (no_end & 2) != 0 ? 3 * units : (*end)[1];
  if (first < 0 || first % units != 0 || last != first + units || last > 3 * units)
    return std::nullopt;
  return Group{of, static_cast<int>(first / units)};
}

std::optional<Group> group(const RewriteContext& r, const Output& o) {
  if (splits_columns(r, *o.node, 3)) return Group{o.node->inputs()[1], o.index};
  return sliced_group(r, o);
}

// A sum of group i of two values, in either order.
struct Groups {
  Output of_input;
  Output of_state;
};

bool sums_groups(const RewriteContext& r, const Output& sum, const Groups& values, int i) {
  if (!is(sum, "AddV2") && !is(sum, "Add")) return false;
  const auto a = group(r, sum.node->inputs()[0]), b = group(r, sum.node->inputs()[1]);
  const Group x{values.of_input, i}, h{values.of_state, i};
  return (a == x && b == h) || (a == h && b == x);
}

bool is_one(const Output& o) {
  if (o.node->kind() != NodeKind::kConst) return false;
  const Array& value = *o.node->attr<std::shared_ptr<const Array>>("value");
  // More axes would be the result's too.
  return value.dtype() == DType::kFloat && value.num_elements() == 1 && value.rank() <= 2 &&
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
        const auto x2 = group(r, sum->node->inputs()[k]);
        const Output reset = sum->node->inputs()[1 - k];
        if (!x2 || x2->index != 2 || !is(reset, "Mul") || r.uses().of(reset.node) != 1) continue;
        const auto part = gated(r, *reset.node);
        const auto h2 = part ? group(r, part->value) : std::nullopt;
        if (!h2 || h2->index != 2) continue;
        const Groups values{x2->of, h2->of};
        if (values.of_input == values.of_state || !sums_groups(r, part->gate, values, 1) ||
            !sums_groups(r, z.node->inputs()[0], values, 0) || r.uses().of(part->gate.node) != 1 ||
            r.uses().of(z.node->inputs()[0].node) != 1)
          continue;
        // Widths that are broadcast are no gates of one step.
        const std::int64_t units = units_of(values.of_input, 3);
        if (units < 0 || !has_columns(values.of_state, 3 * units) || !has_columns(state, units))
          continue;
        Node* fused = r.add("_GruGates", {values.of_input, values.of_state, state}, {});
        r.graph().set_output_shape(fused, 0, r.node().output_shape(0));
        r.replace({&r.node(), 0}, {fused, 0});
        return true;
      }
    }
  }
  return false;
}

}  // namespace tandem::internal
