#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/device/task_stream.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Device;
class HostMemoryReader;
struct KernelList;
class Runtime;

/// What is found out about an eager call on devices before it runs. It follows from the op, the
/// attributes, the scope, and the dtypes, shapes and devices of the inputs, unless something is
/// read from the host's memory; then it is kept for calls of the same kind.
struct DeviceCallPlan {
  std::shared_ptr<const OpDef> op;  ///< a copy may end after the runtime
  AttrMap attrs;                    ///< complete
  std::vector<DType> output_dtypes;
  Device* device = nullptr;
  const KernelList* kernels = nullptr;
  bool host_alone = false;    ///< the kernel runs on the calling thread
  std::vector<bool> on_host;  ///< by input: the op wants it there

  // Known once the call has been enqueued.
  bool enqueued = false;
  KernelWork work;
  /// The results' shapes, where memory can be had before the kernel runs.
  std::optional<std::vector<Shape>> results;
  std::vector<std::size_t> result_bytes;
  int device_index = -1;  ///< of the device, in its runtime
  /// The device, if its kernel reads values of the host there instead of having them copied; null:
  /// there is none.
  HostMemoryReader* host_reader = nullptr;
  std::vector<bool> host_reads;  ///< by input: such a value; empty without `host_reader`
  /// Where calls of the kind can be handed over as they are (DeviceLaunch::repeat); null: they
  /// cannot.
  TaskStream* repeats_on = nullptr;

  /// Throws what is wrong with the call.
  DeviceCallPlan(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                 const AttrMap& given);
  /// Finds the work and the results for inputs as the kernel gets them, which were made of
  /// `inputs`.
  void complete(Runtime& runtime, std::span<const Tensor> inputs, const std::vector<Array>& arrays);

  /// True if nothing of the call is seen before its kernel has run, and its results are made in the
  /// device's memory: the call may return at once.
  bool may_be_pending() const;

 private:
  void choose_host_reads(std::span<const Tensor> inputs);
};

/// The plan of a call like this one that the calling thread has made lately; null if there is none.
std::shared_ptr<const DeviceCallPlan> known_plan(Runtime& runtime, const OpDef& op,
                                                 std::span<const Tensor> inputs,
                                                 const AttrMap& given);
/// Keeps a plan that is complete, if it serves all calls like this one.
void keep_plan(Runtime& runtime, std::span<const Tensor> inputs, const AttrMap& given,
               std::shared_ptr<const DeviceCallPlan> plan);

}  // namespace tandem
