#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem {
namespace {

template <class T>
void broadcast_gradient_args(KernelContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).rank() != 1) throw InvalidArgumentError(cat("In[", i, "] must be a vector.", c.input(i).shape()));
  }
  const auto ranks = {c.input(0).num_elements(), c.input(1).num_elements()};
  const std::int64_t rank = std::max(ranks);
  const auto size = [&](int input, std::int64_t axis) -> std::int64_t {
    const std::int64_t own = axis - (rank - c.input(input).num_elements());
    return own < 0 ? 1 : c.input(input).template data<T>()[own];
  };
  std::vector<T> axes[2];
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const std::int64_t s0 = size(0, axis), s1 = size(1, axis);
    if (s0 != s1 && s0 != 1 && s1 != 1) {
      throw InvalidArgumentError(cat("Incompatible shapes: axis ", axis, " has sizes ", s0, " and ", s1, "."));
    }
    // Where both are 1 either may be summed; TensorFlow names the axis for both.
    if (s0 == 1) axes[0].push_back(static_cast<T>(axis));
    if (s1 == 1) axes[1].push_back(static_cast<T>(axis));
  }
  for (int i = 0; i < 2; ++i) {
    Array& out = c.allocate_output(i, Shape{static_cast<std::int64_t>(axes[i].size())});
    std::copy(axes[i].begin(), axes[i].end(), out.template data<T>());
  }
}

const KernelRegistration kInt32{
    {.op = "BroadcastGradientArgs", .types = {{"T", {DType::kInt32}}}, .run = broadcast_gradient_args<std::int32_t>}};
const KernelRegistration kInt64{
    {.op = "BroadcastGradientArgs", .types = {{"T", {DType::kInt64}}}, .run = broadcast_gradient_args<std::int64_t>}};

}  // namespace
}  // namespace tandem
