#pragma once

#include <functional>

#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {

/// Measures how long the GPU takes for something, by two events of the driver's.
class Timer {
 public:
  /// Throws Failure.
  explicit Timer(Gpu& gpu);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Seconds for what `issue` issues to the stream, once that is over. Throws Failure.
  double seconds(CUstream stream, const std::function<void(CUstream)>& issue);

 private:
  Gpu& gpu_;
  CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace tandem::cuda
