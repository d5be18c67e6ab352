#include "tandem/graph/internal/elementwise_program.h"

#include <algorithm>
#include <utility>

namespace tandem::passes {
namespace {

constexpr std::size_t kMaxInputs = 24;

}  // namespace

std::int64_t ElementwiseProgram::input(Output in) {
  const auto known = std::find(inputs.begin(), inputs.end(), in);
  const std::int64_t number = known - inputs.begin();
  if (known == inputs.end()) inputs.push_back(in);
  return number;
}

void ElementwiseProgram::write(AttrMap& attrs) const {
  attrs.set("ops", ops);
  attrs.set("operands", operands);
  std::vector<DType> types;
  for (const Output& in : inputs) types.push_back(in.node->output_dtype(in.index));
  attrs.set("Tin", std::move(types));
}

bool ElementwiseProgram::can_run(const PartialShape& shape) const {
  return inputs.size() <= kMaxInputs &&
         std::any_of(inputs.begin(), inputs.end(),
                     [&](const Output& in) { return in.node->output_shape(in.index) == shape; });
}

bool is_large(const PartialShape& shape) {
  if (!shape.has_rank()) return false;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) return false;
    if (dim > 0) count = std::min(count, kMinLargeElements) * std::min(dim, kMinLargeElements);
  }
  return count >= kMinLargeElements;
}

}  // namespace tandem::passes
