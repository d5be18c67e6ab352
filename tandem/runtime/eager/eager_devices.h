#pragma once

#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Runtime;

/// Eager calls where a runtime has more than one device: picks the device (`choose_device`), copies
/// inputs to it on its copy stream and hands the kernel to its compute stream. Where the results'
/// shapes are known and nothing of them lies on the host the call returns at once, and the results
/// are late (`TensorImpl::late`); else it waits. Results stay on the device.
std::vector<Tensor> run_eagerly_on_devices(Runtime& runtime, const OpDef& op,
                                           std::span<const Tensor> inputs, const AttrMap& attrs);

/// A tensor for a value that may lie in a device's memory.
Tensor tensor_on(Runtime& runtime, Array value);

}  // namespace tandem
