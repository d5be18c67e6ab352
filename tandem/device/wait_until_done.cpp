#include "tandem/device/wait_until_done.h"

#include <cassert>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/device/inter_op_pool.h"

namespace tandem {

void wait_until_done(
    const std::function<void(std::function<void(std::exception_ptr)> done)>& start) {
  struct Waiter {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
  };
  // Shared: the work may still be inside `done` when this thread goes on.
  const auto waiter = std::make_shared<Waiter>();
  start([waiter](std::exception_ptr error) {
    std::lock_guard lock(waiter->mutex);
    waiter->done = true;
    waiter->error = std::move(error);
    waiter->changed.notify_all();
  });
  std::unique_lock lock(waiter->mutex);
  assert(waiter->done || !InterOpPool::on_worker());  // a pool's thread must not wait
  waiter->changed.wait(lock, [&] { return waiter->done; });
  if (waiter->error) std::rethrow_exception(waiter->error);
}

}  // namespace tandem
