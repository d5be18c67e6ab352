#include "tandem/device/cuda/internal/timer.h"

namespace tandem::cuda {

Timer::Timer(Gpu& gpu) : gpu_(gpu) {
  gpu_.check(driver().p_cuEventCreate(&begin_, 0), "cuEventCreate");
  const CUresult result = driver().p_cuEventCreate(&end_, 0);
  if (result != CUDA_SUCCESS) driver().p_cuEventDestroy(begin_);
  gpu_.check(result, "cuEventCreate");
}

Timer::~Timer() {
  driver().p_cuEventDestroy(begin_);
  driver().p_cuEventDestroy(end_);
}

double Timer::seconds(CUstream stream, const std::function<void(CUstream)>& issue) {
  gpu_.check(driver().p_cuEventRecord(begin_, stream), "cuEventRecord");
  issue(stream);
  gpu_.check(driver().p_cuEventRecord(end_, stream), "cuEventRecord");
  gpu_.check(driver().p_cuEventSynchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  gpu_.check(driver().p_cuEventElapsedTime(&milliseconds, begin_, end_), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace tandem::cuda
