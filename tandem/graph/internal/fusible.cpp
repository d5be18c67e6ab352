#include "tandem/graph/internal/fusible.h"

#include <algorithm>

#include "tandem/graph/passes.h"

namespace tandem::passes {
namespace {

// Loops take no attributes: those must be what is meant where nothing is said.
bool has_default_attrs(const Node& node) {
  const auto& attrs = node.op().attrs;
  return std::all_of(attrs.begin(), attrs.end(), [&](const AttrDef& attr) {
    const AttrValue* value = node.attrs().find(attr.name);
    return !value || value->get_if<DType>() || attr.default_value.empty() ||
           *value == attr.default_value;
  });
}

}  // namespace

bool is_fusible_dtype(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kHalf || dtype == DType::kBFloat16;
}

std::vector<Output> value_inputs(const Node& node) {
  std::vector<Output> values;
  const std::uint32_t host = node.op().traits.host_inputs;
  for (std::size_t i = 0; i < node.inputs().size(); ++i)
    if (i >= 32 || ((host >> i) & 1) == 0) values.push_back(node.inputs()[i]);
  return values;
}

namespace {

// Whether it goes element by element over values whose types all are `suits`.
template <class Suits>
bool has_fusible_form(const Node& node, Suits suits) {
  const OpTraits& traits = node.op().traits;
  if (!traits.elementwise || traits.stateful || node.kind() != NodeKind::kPlain ||
      node.num_outputs() != 1 || !suits(node.output_dtype(0)))
    return false;
  // A sum of more values than a group has places for is one loop already.
  constexpr std::size_t kMaxValues = 64;
  const std::vector<Output> values = value_inputs(node);
  if (values.empty() || values.size() > kMaxValues ||
      !std::all_of(values.begin(), values.end(),
                   [&](const Output& in) { return suits(in.node->output_dtype(in.index)); }))
    return false;
  const PartialShape& shape = node.output_shape(0);
  // A shape that only an operand on the host gives must be another operand's too, once fused.
  if (traits.host_inputs != 0 && !shape.is_fully_known()) return false;
  return shape.has_rank() && has_default_attrs(node);
}

}  // namespace

bool is_fusible(const Node& node, Evaluator& evaluator) {
  return has_fusible_form(node, is_fusible_dtype) && evaluator.has_float_loops(node);
}

bool is_fusible_in_double(const Node& node) {
  return has_fusible_form(node, [](DType dtype) { return dtype == DType::kDouble; });
}

}  // namespace tandem::passes
