#include "tandem/device/cuda/internal/marker.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

}  // namespace

bool Marker::wait() {
  if (over()) return true;
  if (driver().p_cuEventSynchronize(event_) != CUDA_SUCCESS) return false;
  over_.store(true, std::memory_order_release);
  return true;
}

MarkerPool::~MarkerPool() {
  for (CUevent event : unused_) driver().p_cuEventDestroy(event);
}

CUevent MarkerPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      CUevent event = unused_.back();
      unused_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  return driver().p_cuEventCreate(&event, kEventFlags) == CUDA_SUCCESS ? event : nullptr;
}

std::shared_ptr<Marker> MarkerPool::record(CUstream stream) {
  CUevent event = take();
  if (!event) return nullptr;
  if (driver().p_cuEventRecord(event, stream) != CUDA_SUCCESS) {
    driver().p_cuEventDestroy(event);
    return nullptr;
  }
  return {new Marker(event, stream), [pool = shared_from_this()](Marker* marker) {
            std::lock_guard lock(pool->mutex_);
            pool->unused_.push_back(marker->event());
            delete marker;
          }};
}

}  // namespace tandem::cuda
