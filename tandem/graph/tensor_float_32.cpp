#include "tandem/graph/tensor_float_32.h"

#include <atomic>

namespace tandem {
namespace {

std::atomic<bool>& setting() {
  static std::atomic<bool> enabled{false};
  return enabled;
}

}  // namespace

bool tensor_float_32_enabled() { return setting().load(std::memory_order_relaxed); }
void set_tensor_float_32_enabled(bool enabled) {
  setting().store(enabled, std::memory_order_relaxed);
}

}  // namespace tandem
