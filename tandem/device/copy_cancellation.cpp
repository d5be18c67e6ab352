#include "tandem/device/copy_cancellation.h"

#include <atomic>

namespace tandem {
namespace {

std::atomic<std::shared_ptr<const Cancellation> (*)()> g_of_this_thread{nullptr};

}  // namespace

void set_copy_cancellation(std::shared_ptr<const Cancellation> (*of_this_thread)()) {
  g_of_this_thread = of_this_thread;
}

std::shared_ptr<const Cancellation> copy_cancellation() {
  const auto of_this_thread = g_of_this_thread.load();
  return of_this_thread ? of_this_thread() : nullptr;
}

}  // namespace tandem
