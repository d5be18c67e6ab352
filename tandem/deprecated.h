#pragma once

/// Names of the previous minor version, each an alias of its successor. Programs that use one build
/// with a warning that names the successor; the aliases go with the next minor version.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "tandem/core/machine.h"
#include "tandem/data/contact_sheet.h"
#include "tandem/device/serial_kernel_scope.h"
#include "tandem/graph/rng_position.h"
#include "tandem/placement/task_graph.h"
#include "tandem/runtime/created_variables.h"
#include "tandem/runtime/predict_peak_memory.h"
#include "tandem/runtime/reset_placement.h"
#include "tandem/runtime/trace.h"

namespace tandem {

using MachineLimits [[deprecated("use ResourceLimits")]] = ResourceLimits;
using AloneScope [[deprecated("use SerialKernelScope")]] = SerialKernelScope;
using DrawPosition [[deprecated("use RngPosition")]] = RngPosition;
using MadeVariables [[deprecated("use CreatedVariables")]] = CreatedVariables;
using Held [[deprecated("use Allocation")]] = Allocation;

[[deprecated("use unknown_dim_queries")]] inline std::uint64_t unknown_sizes_told() {
  return unknown_dim_queries();
}

namespace config {

[[deprecated("use predict_peak_memory")]] inline std::vector<DevicePeak> predicted_peak(
    const ConcreteFunction& function, std::span<const Tensor> args) {
  return predict_peak_memory(function, args);
}
[[deprecated("use predict_peak_memory")]] inline std::vector<DevicePeak> predicted_peak(
    const ConcreteFunction& function, std::initializer_list<Tensor> args) {
  return predict_peak_memory(function, args);
}
[[deprecated("use predict_peak_memory")]] inline std::vector<DevicePeak> predicted_peak(
    const ConcreteFunction& function) {
  return predict_peak_memory(function);
}
[[deprecated("use reset_placement")]] inline void place_again(const ConcreteFunction& function) {
  reset_placement(function);
}

}  // namespace config

namespace data {

[[deprecated("use render_digits")]] inline Tensor draw_digits(const Tensor& images,
                                                              const Tensor& labels,
                                                              const Tensor& predictions,
                                                              std::int64_t columns) {
  return render_digits(images, labels, predictions, columns);
}

}  // namespace data
}  // namespace tandem
