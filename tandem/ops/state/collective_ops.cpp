#include "tandem/ops/collective_ops.h"

#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

std::vector<Tensor> all_reduce(const std::vector<Tensor>& values,
                               const std::vector<std::string>& devices, Reduction reduction) {
  if (values.size() != devices.size() || values.empty()) {
    throw InvalidArgumentError(cat("all_reduce needs one value for each device, but got ",
                                   values.size(), " values and ", devices.size(), " devices."));
  }
  for (const Tensor& value : values) {
    if (value.dtype() != values.front().dtype() ||
        !value.partial_shape().is_compatible(values.front().partial_shape())) {
      throw InvalidArgumentError(cat("all_reduce needs values of one dtype and shape, but got ",
                                     values.front().dtype(), values.front().partial_shape(),
                                     " and ", value.dtype(), value.partial_shape(), "."));
    }
  }
  std::vector<Tensor> results;
  for (const std::string& device : devices) {
    const DeviceScope on(device);
    Tensor sum = add_n(values);
    if (reduction == Reduction::kMean)
      sum = sum / cast(Tensor(static_cast<int>(values.size())), sum.dtype());
    results.push_back(std::move(sum));
  }
  return results;
}

}  // namespace tandem
