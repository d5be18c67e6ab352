#include "tandem/runtime/tensor_float_32.h"

#include "tandem/graph/tensor_float_32.h"

namespace tandem::config::experimental {

void enable_tensor_float_32_execution(bool enabled) { set_tensor_float_32_enabled(enabled); }
bool tensor_float_32_execution_enabled() { return tensor_float_32_enabled(); }

}  // namespace tandem::config::experimental
