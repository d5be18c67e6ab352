#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Runtime;

/// Eager calls where a runtime has more than one device: picks the device (scopes, the device of a
/// resource, else the first accelerator with a kernel; small integers on the host stay there, as in
/// TensorFlow), copies inputs to it, runs the kernel on its stream and waits. Results stay on the
/// device. Throws InvalidArgumentError with TensorFlow's text where no device will do.
std::vector<Tensor> run_eagerly_on_devices(Runtime& runtime, const OpDef& op,
                                           std::span<const Tensor> inputs, const AttrMap& attrs);

/// The device on which a function called here runs what asks for nothing.
Device& device_of_call(Runtime& runtime);

/// A tensor for a value that may lie in a device's memory.
Tensor tensor_on(Runtime& runtime, Array value);

}  // namespace tandem
