#include "tandem/runtime/eager/eager_devices.h"

#include <utility>

#include "tandem/device/memory_space.h"
#include "tandem/runtime/eager/device_launch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem {

Tensor tensor_on(Runtime& runtime, Array value) {
  Device* device = device_of(value);
  if (!device) return Tensor(new TensorImpl(std::move(value)));
  const int place = runtime.index_of(*device);
  // A value of another runtime, whose devices this one cannot keep alive.
  if (place < 0) return Tensor(new TensorImpl(copy_to_host(value)));
  Tensor tensor(new TensorImpl(token_view(std::move(value))));
  tensor.impl()->device = runtime.devices()[static_cast<std::size_t>(place)];
  return tensor;
}

std::vector<Tensor> run_eagerly_on_devices(Runtime& runtime, const OpDef& op,
                                           std::span<const Tensor> inputs, const AttrMap& attrs) {
  return DeviceLaunch::run(runtime, op, inputs, attrs);
}

}  // namespace tandem
