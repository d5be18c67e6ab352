#include "tandem/runtime/internal/wait_for_kernel.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "tandem/graph/kernel.h"

namespace tandem {

void wait_for_kernel(const KernelDecl& kernel, KernelContext& context) {
  struct Waiter {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
  };
  // Shared: the kernel may still be inside `done` when this thread goes on.
  const auto waiter = std::make_shared<Waiter>();
  kernel.run_async(context, [waiter](std::exception_ptr error) {
    std::lock_guard lock(waiter->mutex);
    waiter->done = true;
    waiter->error = std::move(error);
    waiter->changed.notify_all();
  });
  std::unique_lock lock(waiter->mutex);
  waiter->changed.wait(lock, [&] { return waiter->done; });
  if (waiter->error) std::rethrow_exception(waiter->error);
}

}  // namespace tandem
