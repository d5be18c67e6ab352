#include "tandem/graph/internal/row_sums.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/graph/internal/fusible.h"
#include "tandem/graph/op_def.h"

namespace tandem::passes {
namespace {

constexpr std::int64_t kLargestLastAxis = 8192;

bool is_fused_sum(const Node& node) { return node.op().name == "_FusedSum"; }

}  // namespace

bool is_fusible_sum_dtype(DType dtype) {
  return is_fusible_dtype(dtype) || dtype == DType::kDouble;
}

bool has_row_sums(const PartialShape& shape) {
  return shape.rank() >= 2 && shape.dim(shape.rank() - 1) >= 1 &&
         shape.dim(shape.rank() - 1) <= kLargestLastAxis;
}

bool all_axes_but_last(const Node& reduction, int rank) {
  const Node* axes = reduction.inputs()[1].node;
  if (axes->kind() != NodeKind::kConst || rank < 2) return false;
  const Array& value = *axes->attr<std::shared_ptr<const Array>>("value");
  std::vector<bool> named(static_cast<std::size_t>(rank), false);
  for (std::int64_t i = 0; i < value.num_elements(); ++i) {
    std::int64_t axis = value.dtype() == DType::kInt32 ? value.data<std::int32_t>()[i]
                                                       : value.data<std::int64_t>()[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank - 1) return false;
    named[static_cast<std::size_t>(axis)] = true;
  }
  return std::count(named.begin(), named.end(), true) == rank - 1;
}

bool is_row_sum(const Node& node) {
  const ReductionKind joins = node.op().traits.joins;
  const bool of_channels = joins == ReductionKind::kSumOfChannels;
  if ((!of_channels && joins != ReductionKind::kSum) || !is_fusible_sum_dtype(node.output_dtype(0)))
    return false;
  const PartialShape& shape = node.inputs()[0].node->output_shape(node.inputs()[0].index);
  if (!shape.has_rank() || shape.rank() < 2) return false;
  if (of_channels) return node.attr<std::string>("data_format") == "NHWC";
  return all_axes_but_last(node, shape.rank());
}

std::vector<Output> summed_by(const Node& sum) {
  return is_fused_sum(sum) ? sum.inputs() : std::vector<Output>{sum.inputs()[0]};
}

std::int64_t append_sum(const Node& sum, Output root, std::int64_t root_number,
                        ElementwiseProgram& program) {
  if (!is_fused_sum(sum)) return root_number;
  const auto first = static_cast<std::int64_t>(program.ops.size());
  const auto& ops = sum.attr<std::vector<std::string>>("ops");
  program.ops.insert(program.ops.end(), ops.begin(), ops.end());
  const auto& numbers = sum.attr<std::vector<std::int64_t>>("operands");
  for (std::size_t next = 0; next < numbers.size();) {
    std::int64_t count = numbers[next++];
    program.operands.push_back(count);
    for (; count > 0; --count) {
      const std::int64_t number = numbers[next++];
      if (number < 0) {
        program.operands.push_back(number - first);
        continue;
      }
      const Output in = sum.inputs()[static_cast<std::size_t>(number)];
      program.operands.push_back(in == root ? root_number : program.input(in));
    }
  }
  return program.last();
}

}  // namespace tandem::passes
