#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::config {

struct DevicePeak {
  std::string device;     ///< full name
  std::size_t bytes = 0;  ///< in use at the peak of a call: what is in use now included
};

/// How much memory each device will have in use at the peak of a call with these arguments, known
/// from the plan before anything runs:
///
///     auto step = td::function(…);
///     for (const auto& p : td::config::predict_peak_memory(step.concrete(x, y), {x, y}))
///       std::cout << p.device << ' ' << p.bytes << '\n';
///
/// Places and plans the function and those that it calls, as the call will find them. Loops count
/// as often as they go round where that follows from constants and small arguments, else once; of
/// branches that only the run chooses the larger one counts. Values whose size is known only at run
/// time, what kernels take while they run, variables that change their size and graphs with
/// TensorFlow 1 control flow count nothing, nor do other calls at the same time. Compare with
/// get_memory_info.
TANDEM_EXPORT std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function,
                                                          std::span<const Tensor> args);
TANDEM_EXPORT std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function,
                                                          std::initializer_list<Tensor> args);
/// Predicts before there are arguments: as if they were made on the host for the call. Throws
/// InvalidArgumentError if the function was traced for arguments of unknown sizes.
TANDEM_EXPORT std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function);

}  // namespace tandem::config
