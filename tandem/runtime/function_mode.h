#pragma once

#include "tandem/core/export.h"

namespace tandem::config {

/// With true, a td::function runs its C++ code at each call, op by op, and traces nothing: for
/// finding errors, with a debugger or by printing. Functions of datasets are traced all the same,
/// and concrete functions run their graphs. For the whole process; thread-safe.
TANDEM_EXPORT void run_functions_eagerly(bool run_eagerly);
TANDEM_EXPORT bool functions_run_eagerly();

/// TensorFlow's older names.
inline void experimental_run_functions_eagerly(bool run_eagerly) {
  run_functions_eagerly(run_eagerly);
}
inline bool experimental_functions_run_eagerly() { return functions_run_eagerly(); }

}  // namespace tandem::config
