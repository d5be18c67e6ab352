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
///     for (const auto& p : td::config::predicted_peak(step.concrete(x, y), {x, y}))
///       std::cout << p.device << ' ' << p.bytes << '\n';
///
/// Places and plans the function, as the call will find it. Values whose size only the run tells,
/// and graphs with TensorFlow 1 control flow, count nothing. Compare with get_memory_info.
TANDEM_EXPORT std::vector<DevicePeak> predicted_peak(const ConcreteFunction& function,
                                                     std::span<const Tensor> args);
TANDEM_EXPORT std::vector<DevicePeak> predicted_peak(const ConcreteFunction& function,
                                                     std::initializer_list<Tensor> args);
/// The same before there are arguments: as if they were made on the host for the call. Throws
/// InvalidArgumentError if the function was traced for arguments of unknown sizes.
TANDEM_EXPORT std::vector<DevicePeak> predicted_peak(const ConcreteFunction& function);

}  // namespace tandem::config
