#include "tandem/ops/internal/image_patterns.h"

#include <algorithm>
#include <memory>

#include "tandem/graph/internal/fusible.h"

namespace tandem::passes {
namespace {

bool is_constant_zero(const Output& in) {
  if (in.node->kind() != NodeKind::kConst) return false;
  const Array& value = *in.node->attr<std::shared_ptr<const Array>>("value");
  if (value.num_elements() != 1) return false;
  if (value.dtype() == DType::kInt32) return value.data<std::int32_t>()[0] == 0;
  return value.dtype() == DType::kInt64 && value.data<std::int64_t>()[0] == 0;
}

// An index expression that does nothing but what `mask` says to the first axis: x[newaxis], x[0].
bool only_first_entry(const Node& node, std::string_view mask) {
  if (node.op().name != "StridedSlice" || node.attr<std::int64_t>(mask) != 1) return false;
  const auto other = mask == "new_axis_mask" ? "shrink_axis_mask" : "new_axis_mask";
  return node.attr<std::int64_t>(other) == 0 &&
         node.inputs()[1].node->output_shape(node.inputs()[1].index) == PartialShape({1});
}

}  // namespace

bool is_op(const Node& node, std::string_view name) { return node.op().name == name; }

bool makes_batch(const Node& node) {
  if (node.inputs().empty()) return false;
  const Output in = node.inputs()[0];
  const PartialShape& from = in.node->output_shape(in.index);
  if (!from.has_rank() || from.rank() != 3) return false;
  return (is_op(node, "ExpandDims") && is_constant_zero(node.inputs()[1])) ||
         only_first_entry(node, "new_axis_mask");
}

bool takes_from_batch(const Node& node) {
  if (node.inputs().empty()) return false;
  const Output in = node.inputs()[0];
  const PartialShape& from = in.node->output_shape(in.index);
  if (!from.has_rank() || from.rank() != 4 || from.dim(0) != 1) return false;
  return (is_op(node, "Squeeze") &&
          node.attr<std::vector<std::int64_t>>("squeeze_dims") == std::vector<std::int64_t>{0}) ||
         (only_first_entry(node, "shrink_axis_mask") && is_constant_zero(node.inputs()[1]));
}

const char* method_of(const Node& node) {
  if (is_op(node, "ResizeBilinear")) return "bilinear";
  if (is_op(node, "ResizeNearestNeighbor")) return "nearest";
  if (is_op(node, "ResizeBicubic")) return "bicubic";
  return is_op(node, "ResizeArea") ? "area" : nullptr;
}

bool is_decode(const Node& node) {
  if (is_op(node, "DecodeImage") && node.attr<bool>("expand_animations")) return false;
  if (is_op(node, "DecodeImage") || is_op(node, "DecodePng"))
    return node.output_dtype(0) == DType::kUint8;
  return is_op(node, "DecodeJpeg") || is_op(node, "_DecodeJpegOfSize") ||
         is_op(node, "DecodeAndCropJpeg");
}

bool broadcasts_to(const PartialShape& operand, const PartialShape& whole) {
  if (!operand.has_rank() || operand.rank() > whole.rank()) return false;
  for (int i = 1; i <= operand.rank(); ++i) {
    const std::int64_t dim = operand.dim(operand.rank() - i);
    if (dim != 1 && (dim < 0 || dim != whole.dim(whole.rank() - i))) return false;
  }
  return true;
}

RowOps::RowOps(const std::vector<Node*>& steps, const Node* first) {
  for (const Node* step : steps) {
    append(*step, first);
    first = step;
  }
}

std::int64_t RowOps::operand(const Output& in, const Node* previous, std::int64_t made) {
  if (in.node == previous) return made;
  const auto known = std::find(args.begin(), args.end(), in);
  const std::int64_t number = 1 + (known - args.begin());
  if (known == args.end()) args.push_back(in);
  return number;
}

void RowOps::append(const Node& step, const Node* previous) {
  result = step.output_dtype(0);
  // Input 0 is the row, and then what the latest op has made of it.
  const std::int64_t made = -static_cast<std::int64_t>(ops.size());
  if (!is_op(step, "_FusedElementwise")) {
    if (!is_fusible_dtype(result)) return;  // a last cast, which is no part of the program
    const std::vector<Output> values = value_inputs(step);
    ops.push_back(step.op().name);
    operands.push_back(static_cast<std::int64_t>(values.size()));
    for (const Output& in : values) operands.push_back(operand(in, previous, made));
    return;
  }
  const auto first = static_cast<std::int64_t>(ops.size());
  const auto& names = step.attr<std::vector<std::string>>("ops");
  const auto& numbers = step.attr<std::vector<std::int64_t>>("operands");
  ops.insert(ops.end(), names.begin(), names.end());
  for (std::size_t at = 0; at < numbers.size();) {
    std::int64_t left = numbers[at++];
    operands.push_back(left);
    for (; left > 0; --left, ++at) {
      const std::int64_t number = numbers[at];
      operands.push_back(
          number < 0 ? number - first
                     : operand(step.inputs()[static_cast<std::size_t>(number)], previous, made));
    }
  }
}

}  // namespace tandem::passes
