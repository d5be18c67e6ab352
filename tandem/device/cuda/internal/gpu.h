#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/driver.h"

namespace tandem::cuda {

/// A physical GPU. Logical devices share its primary context. Thread-safe.
class Gpu {
 public:
  explicit Gpu(int ordinal);

  void describe(TandemDeviceProperties* properties) const;
  /// The context stays from the first use on, so that memory of one logical device outlives it.
  CUcontext context();
  CUdevice device() const { return device_; }
  /// 90 for 9.0.
  int compute_capability() const;
  /// All that the speed of kernels depends on, on one line: the name, the compute capability and
  /// the number of multiprocessors.
  std::string model() const;

  /// Why nothing works any more; empty while it does.
  std::string lost() const;
  /// Whether nothing works any more, for asking often.
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  void lose(const std::string& why);
  /// Throws Failure for a failed call of the driver, and takes note if the GPU is lost by it.
  void check(CUresult result, const char* call);

 private:
  int attribute(CUdevice_attribute which) const;

  CUdevice device_ = 0;
  mutable std::mutex mutex_;
  CUcontext context_ = nullptr;
  std::string lost_;
  std::atomic<bool> is_lost_{false};
};

/// Those that the driver shows to this process (CUDA_VISIBLE_DEVICES), found once.
const std::vector<std::unique_ptr<Gpu>>& gpus();

/// Makes a GPU's context the thread's for a block, and restores the one before.
class ContextScope {
 public:
  explicit ContextScope(Gpu& gpu);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
};

}  // namespace tandem::cuda

/// A logical device, as the plugin interface hands it around.
struct TandemDevice {
  tandem::cuda::Gpu* gpu = nullptr;
};
