#include "tandem/device/cuda/internal/host_reads.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "tandem/core/internal/cache_folder.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/device/cuda/internal/choice_file.h"
#include "tandem/device/cuda/internal/per_gpu.h"
#include "tandem/device/cuda/internal/timer.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kSmall = 4, kLarge = std::size_t{1} << 20;
constexpr int kRuns = 5;

// What the copies to be measured need.
class Probe {
 public:
  explicit Probe(Gpu& gpu) : gpu_(gpu) {
    try {
      const Driver& d = driver();
      gpu.check(d.p_cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      gpu.check(d.p_cuMemHostAlloc(&from_, kLarge, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
      gpu.check(d.p_cuMemAlloc(&to_, kLarge), "cuMemAlloc");
    } catch (...) {
      release();
      throw;
    }
  }
  ~Probe() { release(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Whether kernels see the pinned memory at the host's address.
  bool same_address() const {
    CUdeviceptr seen = 0;
    return driver().p_cuMemHostGetDevicePointer &&
           driver().p_cuMemHostGetDevicePointer(&seen, from_, 0) == CUDA_SUCCESS &&
           seen == reinterpret_cast<CUdeviceptr>(from_);
  }

  double seconds(std::size_t bytes) {
    Timer timer(gpu_);
    const auto copy = [&](CUstream stream) {
      gpu_.check(driver().p_cuMemcpyHtoDAsync(to_, from_, bytes, stream), "a copy to the GPU");
    };
    double best = timer.seconds(stream_, copy);
    for (int i = 1; i < kRuns; ++i) best = std::min(best, timer.seconds(stream_, copy));
    return best;
  }

 private:
  void release() {
    if (to_ != 0) driver().p_cuMemFree(to_);
    if (from_) driver().p_cuMemFreeHost(from_);
    if (stream_) driver().p_cuStreamDestroy(stream_);
  }

  Gpu& gpu_;
  CUstream stream_ = nullptr;
  void* from_ = nullptr;
  CUdeviceptr to_ = 0;
};

std::size_t measured(Gpu& gpu) {
  const ContextScope context(gpu);
  Probe probe(gpu);
  if (!probe.same_address()) return 0;
  const double begin = probe.seconds(kSmall), all = probe.seconds(kLarge);
  if (!(all > begin)) return 0;
  // At the rate at which the large copy goes on once it has begun.
  const double bytes = begin * static_cast<double>(kLarge) / (all - begin);
  return static_cast<std::size_t>(std::min(bytes, static_cast<double>(kLarge)));
}

class Limit {
 public:
  explicit Limit(Gpu& gpu) : gpu_(gpu) {}
  // A failure has the next one who asks measure again, unless it is the GPU's last.
  std::size_t get() TANDEM_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!bytes_) bytes_ = measured(gpu_);
    return *bytes_;
  }

 private:
  Gpu& gpu_;
  Mutex mutex_;
  std::optional<std::size_t> bytes_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace

std::size_t host_read_limit(Gpu& gpu) {
  const std::string text = internal::environment_text("TANDEM_CUDA_HOST_READ_LIMIT");
  if (!text.empty()) {
    std::size_t bytes = 0;  // of what is no number, too
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    return bytes;
  }
  if (!may_measure()) return 0;
  std::size_t bytes = 0;
  TandemStatus ignored;
  guarded(&ignored, [&] { bytes = of_gpu<Limit>(gpu).get(); });
  return bytes;
}

}  // namespace tandem::cuda
