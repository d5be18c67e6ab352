// The driver's own copies, without Tandem: what its copies and kernels are measured against.
#pragma once

#include <cstddef>
#include <memory>

namespace bench {

/// Two blocks of a GPU's memory and one of pinned host memory, and a stream. Opens the driver that
/// Tandem has opened; TANDEM_BENCH_CUDA_DRIVER names another library than libcuda.so.1. Throws
/// std::runtime_error where a call of the driver fails.
class PlainCopy {
 public:
  explicit PlainCopy(std::size_t bytes);
  ~PlainCopy();
  PlainCopy(const PlainCopy&) = delete;
  PlainCopy& operator=(const PlainCopy&) = delete;

  void host_to_device();    ///< enqueues it
  void device_to_device();  ///< enqueues it
  void wait();
  /// Whether what was copied to the device, and on it, is what the host has.
  bool is_right();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
