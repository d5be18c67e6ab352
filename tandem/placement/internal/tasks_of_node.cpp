#include "tandem/placement/internal/tasks_of_node.h"

#include <algorithm>

#include "tandem/placement/cost_model.h"

namespace tandem::placement {

double variable_bytes(const Node& node) {
  if (node.kind() != NodeKind::kVariable) return 0;
  const AttrValue* shape = node.attrs().find("shape");
  const AttrValue* dtype = node.attrs().find("dtype");
  const auto* dims = shape ? shape->get_if<PartialShape>() : nullptr;
  const auto* type = dtype ? dtype->get_if<DType>() : nullptr;
  if (!dims || !type || !dims->is_fully_known()) return 0;
  double elements = 1;
  for (const std::int64_t d : dims->dims()) elements *= static_cast<double>(d);
  return elements * static_cast<double>(dtype_size(base_dtype(*type)));
}

int shared_input(const Node& node, int output) {
  const bool shares = ((node.op().traits.shares_memory >> std::min(output, 31)) & 1) != 0;
  const auto& inputs = node.inputs();
  return shares && output < static_cast<int>(inputs.size()) &&
                 inputs[static_cast<std::size_t>(output)].node
             ? output
             : -1;
}

int reusable_input(const Node& node, int output, const std::function<bool(int)>& is_last_reader) {
  if (output != 0) return -1;
  const std::uint32_t mask = node.op().traits.may_reuse;
  const int inputs = std::min(static_cast<int>(node.inputs().size()), 32);
  const double bytes = CostModel::output_bytes(node, 0);
  for (int i = 0; i < inputs; ++i) {
    const Output& in = node.inputs()[static_cast<std::size_t>(i)];
    if ((mask >> i & 1) != 0 && in.node && CostModel::output_bytes(*in.node, in.index) == bytes &&
        is_last_reader(i))
      return i;
  }
  return -1;
}

}  // namespace tandem::placement
