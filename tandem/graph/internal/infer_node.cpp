#include "tandem/graph/internal/infer_node.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/integer_values.h"

namespace tandem::internal {

std::vector<DType> dtypes_of(const std::vector<Output>& inputs) {
  std::vector<DType> types;
  types.reserve(inputs.size());
  DType known = DType::kInvalid;
  for (const Output& in : inputs) {
    types.push_back(in.node ? in.node->output_dtype(in.index) : DType::kInvalid);
    if (known == DType::kInvalid) known = types.back();
  }
  for (DType& t : types) {
    if (t == DType::kInvalid) t = known;
  }
  return types;
}

bool is_back_edge(const Node& from, const Node& to) {
  return from.kind() == NodeKind::kNextIteration && to.kind() == NodeKind::kMerge;
}

std::optional<PartialShape> held_shape(Output output, const KnownOutputs& known) {
  const Node& node = *output.node;
  if (node.kind() == NodeKind::kArg) {
    if (auto held = known.held(node)) return held;
  }
  if (node.kind() == NodeKind::kVariable) {  // a handle stands for its variable's shape
    const AttrValue* shape = node.attrs().find("shape");
    const PartialShape* variable = shape ? shape->get_if<PartialShape>() : nullptr;
    return variable ? std::optional(*variable) : std::nullopt;
  }
  const PartialShape& own = known.shape(output);
  if (own.has_rank() && own.rank() != 1) return std::nullopt;
  const auto sizes = known_elements(output, known);
  if (!sizes || sizes->size() > Shape::kMaxRank) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const KnownInteger& d : *sizes)
    dims.push_back(std::max(d.value_or(PartialShape::kUnknown), PartialShape::kUnknown));
  return PartialShape(std::move(dims));
}

namespace {

// Nothing is planned for a value that cannot be there: its kernel says so, where the error has the
// node's name.
bool has_too_many_elements(const PartialShape& shape) {
  std::int64_t count = 1;
  if (!shape.is_fully_known()) return false;
  for (const std::int64_t dim : shape.dims())
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(dim, 1), &count)) return true;
  return false;
}

}  // namespace

std::vector<PartialShape> infer_outputs(const Node& node, const KnownOutputs& known) {
  const auto count = static_cast<std::size_t>(node.num_outputs());
  if (node.op().shape == nullptr) {
    std::vector<PartialShape> own;
    for (std::size_t i = 0; i < count; ++i) own.push_back(node.output_shape(static_cast<int>(i)));
    return own;
  }
  const std::vector<Output>& inputs = node.inputs();
  std::vector<PartialShape> shapes;
  shapes.reserve(inputs.size());
  // The value that a loop hands back to its Merge may have any shape.
  for (const Output& in : inputs) {
    const bool defined = in.node && !is_back_edge(*in.node, node);
    shapes.push_back(defined ? known.shape(in) : PartialShape::unknown());
  }
  std::deque<Array> computed;
  const auto value_of = [&](int i) -> const Array* {
    const Output in = inputs[static_cast<std::size_t>(i)];
    if (const Array* value = constant_value(in); value || !in.node) return value;
    std::optional<Array> value = known_integers(in, known);
    return value ? &computed.emplace_back(std::move(*value)) : nullptr;
  };
  InferenceContext context(
      node.op(), node.attrs(), std::move(shapes), dtypes_of(inputs), node.num_outputs(), value_of,
      [&](int i) { return held_shape(inputs[static_cast<std::size_t>(i)], known); });
  node.op().shape(context);
  std::vector<PartialShape> outputs = context.take_outputs();
  for (PartialShape& shape : outputs)
    if (has_too_many_elements(shape)) shape = PartialShape::unknown_of_rank(shape.rank());
  return outputs;
}

}  // namespace tandem::internal
