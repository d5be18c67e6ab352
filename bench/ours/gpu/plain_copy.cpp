#include "bench/ours/gpu/plain_copy.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"

namespace bench {
namespace {

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  throw std::runtime_error(std::string(call) + " failed: CUDA error " + std::to_string(result));
}

std::string driver_name() {
  const char* const given = std::getenv("TANDEM_BENCH_CUDA_DRIVER");
  return given != nullptr ? given : "libcuda.so.1";
}

}  // namespace

// The header names functions as the driver exports them: with their versions.
#define BENCH_TEXT_OF(NAME) #NAME
#define BENCH_TEXT(NAME) BENCH_TEXT_OF(NAME)
#define BENCH_CALL(NAME, ...) \
  check(function<decltype(&::NAME)>(BENCH_TEXT(NAME))(__VA_ARGS__), BENCH_TEXT(NAME))

struct PlainCopy::State {
  explicit State(std::size_t size)
      : bytes(size), library(dlopen(driver_name().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library == nullptr) throw std::runtime_error("no CUDA driver (" + driver_name() + ")");
    BENCH_CALL(cuInit, 0);
    BENCH_CALL(cuDeviceGet, &device, 0);
    CUcontext context = nullptr;
    BENCH_CALL(cuDevicePrimaryCtxRetain, &context, device);
    BENCH_CALL(cuCtxSetCurrent, context);
    BENCH_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    BENCH_CALL(cuMemHostAlloc, &host, bytes, 0);
    BENCH_CALL(cuMemAlloc, &first, bytes);
    BENCH_CALL(cuMemAlloc, &second, bytes);
  }

  // What fails in here is known from calls before it.
  ~State() {
    if (library == nullptr) return;
    if (second != 0) function<decltype(&::cuMemFree)>(BENCH_TEXT(cuMemFree))(second);
    if (first != 0) function<decltype(&::cuMemFree)>(BENCH_TEXT(cuMemFree))(first);
    if (host != nullptr) function<decltype(&::cuMemFreeHost)>("cuMemFreeHost")(host);
    if (stream != nullptr)
      function<decltype(&::cuStreamDestroy)>(BENCH_TEXT(cuStreamDestroy))(stream);
    using Release = decltype(&::cuDevicePrimaryCtxRelease);
    function<Release>(BENCH_TEXT(cuDevicePrimaryCtxRelease))(device);
  }

  template <class Function>
  Function function(const char* name) const {
    const auto found = reinterpret_cast<Function>(dlsym(library, name));
    if (found == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
    return found;
  }

  std::size_t bytes;
  void* library;
  CUdevice device = 0;
  CUstream stream = nullptr;
  void* host = nullptr;
  CUdeviceptr first = 0, second = 0;
};

PlainCopy::PlainCopy(std::size_t bytes) : state_(std::make_unique<State>(bytes)) {
  auto* const values = static_cast<unsigned char*>(state_->host);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<unsigned char>(i % 251);
}
PlainCopy::~PlainCopy() = default;

#undef BENCH_CALL
#define BENCH_CALL(NAME, ...) \
  check(state_->function<decltype(&::NAME)>(BENCH_TEXT(NAME))(__VA_ARGS__), BENCH_TEXT(NAME))

void PlainCopy::host_to_device() {
  BENCH_CALL(cuMemcpyHtoDAsync, state_->first, state_->host, state_->bytes, state_->stream);
}

void PlainCopy::device_to_device() {
  BENCH_CALL(cuMemcpyDtoDAsync, state_->second, state_->first, state_->bytes, state_->stream);
}

void PlainCopy::wait() { BENCH_CALL(cuStreamSynchronize, state_->stream); }

bool PlainCopy::is_right() {
  host_to_device();
  device_to_device();
  std::vector<unsigned char> copied(state_->bytes);
  BENCH_CALL(cuMemcpyDtoHAsync, copied.data(), state_->second, state_->bytes, state_->stream);
  wait();
  return std::memcmp(copied.data(), state_->host, state_->bytes) == 0;
}

}  // namespace bench
