#pragma once

#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Device;
class Runtime;

/// One eager call: what it is given, for choosing where it runs.
struct DeviceCall {
  Runtime& runtime;
  const OpDef& op;
  std::span<const Tensor> inputs;
  AttrMap attrs;  ///< complete
  std::vector<DType> output_dtypes;
};

/// Quickly: true only if the call asks for nothing but the host, as one in the functions of a
/// pipeline does, or works on small integers there.
bool plainly_on_host(const Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs);

/// Scopes, the device of a resource, else the first accelerator with a kernel; small integers on
/// the host stay there, as in TensorFlow. Throws InvalidArgumentError with TensorFlow's text where
/// no device will do, UnavailableError for a resource on a device that is lost. Where no device at
/// all has a kernel, the one that was asked for.
Device& choose_device(const DeviceCall& call);

/// A job, replica or task that is not this process, to which soft placement never crosses.
bool names_other_task(const Runtime& runtime, const DeviceSpec& wanted);

/// Throws InvalidArgumentError for an index beyond those of a type of which there are devices, with
/// soft placement, which would take another one; without it the request fails anyway.
void check_device_index(const Runtime& runtime, const DeviceSpec& wanted);

/// Whether the thread's scope asks for something else than the runtime's first CPU.
bool asks_elsewhere(const Runtime& runtime);

/// The device on which a function called here runs what asks for nothing. Throws
/// InvalidArgumentError, or logs the fallback, if the scope's is not there.
Device& device_of_call(Runtime& runtime, const std::string& function);

}  // namespace tandem
