#include "tandem/device/copy_cancellation.h"

#include <atomic>

namespace tandem {
namespace {

std::atomic<Cancelled (*)()> g_of_this_thread{nullptr};

}  // namespace

void set_copy_cancellation(Cancelled (*of_this_thread)()) { g_of_this_thread = of_this_thread; }

Cancelled copy_cancellation() {
  const auto of_this_thread = g_of_this_thread.load();
  return of_this_thread ? of_this_thread() : nullptr;
}

}  // namespace tandem
