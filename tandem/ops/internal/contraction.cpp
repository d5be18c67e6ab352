#include "tandem/ops/internal/contraction.h"

#include <algorithm>
#include <memory>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/internal/einsum_equation.h"

namespace tandem::internal {
namespace {

bool are_distinct(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) == labels.end();
}

bool attr_of(const Node& node, const char* name) {
  const AttrValue* value = node.attrs().find(name);
  return value && *value->get_if<bool>();
}

std::optional<LabelledProduct> einsum_of(const Node& node) {
  if (node.inputs().size() != 2) return std::nullopt;
  const int ranks[] = {shape_of(node.inputs()[0]).rank(), shape_of(node.inputs()[1]).rank()};
  const EinsumLabels labels(EinsumEquation::parse(node.attr<std::string>("equation")), ranks);
  LabelledProduct p{{node.inputs()[0], labels.operands[0]},
                    {node.inputs()[1], labels.operands[1]},
                    labels.result};
  if (!are_distinct(p.a.axes) || !are_distinct(p.b.axes) || !are_distinct(p.result))
    return std::nullopt;
  return p;
}

// Batches are labelled by how far they are from the end, as they broadcast.
std::optional<LabelledProduct> matmul_of(const Node& node, const char* turn_a, const char* turn_b) {
  constexpr int kRow = 0, kColumn = 1, kInner = 2, kBatch = 3;
  const auto labels = [](const Output& o, bool turned, int row, int column) {
    Labels all;
    for (int i = shape_of(o).rank() - 3; i >= 0; --i) all.push_back(kBatch + i);
    all.push_back(turned ? column : row);
    all.push_back(turned ? row : column);
    return all;
  };
  const Output &a = node.inputs()[0], &b = node.inputs()[1];
  return LabelledProduct{{a, labels(a, attr_of(node, turn_a), kRow, kInner)},
                         {b, labels(b, attr_of(node, turn_b), kInner, kColumn)},
                         labels({const_cast<Node*>(&node), 0}, false, kRow, kColumn)};
}

}  // namespace

const PartialShape& shape_of(const Output& o) { return o.node->output_shape(o.index); }

bool is_op(const Output& o, std::string_view op) {
  return o.index == 0 && o.node->op().name == op && o.node->control_inputs().empty();
}

bool has_label(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

const Array* free_constant(const Output& o) {
  if (o.node->kind() != NodeKind::kConst || !o.node->control_inputs().empty()) return nullptr;
  return o.node->attr<std::shared_ptr<const Array>>("value").get();
}

std::optional<LabelledProduct> contraction(const Output& o) {
  const Node& node = *o.node;
  const DType dtype = node.output_dtype(0);
  if (o.index != 0 || !node.control_inputs().empty() ||
      !(dtype == DType::kFloat || dtype == DType::kHalf || dtype == DType::kBFloat16) ||
      !node.output_shape(0).is_fully_known())
    return std::nullopt;
  for (const Output& in : node.inputs())
    if (!shape_of(in).is_fully_known() || in.node->output_dtype(in.index) != dtype)
      return std::nullopt;
  const std::string_view op = node.op().name;
  if (op == "Einsum") return einsum_of(node);
  if (op == "MatMul") return matmul_of(node, "transpose_a", "transpose_b");
  if (op == "BatchMatMul" || op == "BatchMatMulV2") return matmul_of(node, "adj_x", "adj_y");
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> transpose_order(const Output& o) {
  if (!is_op(o, "Transpose")) return std::nullopt;
  const Array* perm = free_constant(o.node->inputs()[1]);
  if (!perm) return std::nullopt;
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < perm->num_elements(); ++i) {
    const std::int64_t axis = perm->dtype() == DType::kInt32 ? perm->data<std::int32_t>()[i]
                                                             : perm->data<std::int64_t>()[i];
    order.push_back(axis < 0 ? axis + perm->num_elements() : axis);
  }
  return order;
}

Labels labels_before(const std::vector<std::int64_t>& order, const Labels& after) {
  Labels labels(after.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    labels[static_cast<std::size_t>(order[i])] = after[i];
  return labels;
}

}  // namespace tandem::internal
