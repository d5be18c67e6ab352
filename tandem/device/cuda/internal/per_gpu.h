#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {

/// The process's one T of a GPU, made from it when it is first asked for. It stays as long as the
/// process. Thread-safe.
template <class T>
T& of_gpu(Gpu& gpu) {
  struct All {
    std::mutex mutex;
    std::map<Gpu*, std::unique_ptr<T>> by_gpu;
  };
  static NeverDestroyed<All> all;
  std::lock_guard lock(all->mutex);
  std::unique_ptr<T>& found = all->by_gpu[&gpu];
  if (!found) found = std::make_unique<T>(gpu);
  return *found;
}

}  // namespace tandem::cuda
