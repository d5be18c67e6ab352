// A stand-in for a CUDA driver: the functions that libtandem_cuda.so uses, on host memory and
// threads. It is no GPU and nothing is measured on it; with it the conformance suite runs through
// the library's own queues, events and error paths on machines without one. It is stricter than a
// driver where that finds mistakes: copies always come late, and addresses and contexts are
// checked.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"

namespace {

// Bytes of a GPU: 32 MiB, or what CUDA_STAND_IN_MIB says.
const std::size_t kMemory = [] {
  const char* mib = std::getenv("CUDA_STAND_IN_MIB");
  return (mib ? std::strtoul(mib, nullptr, 10) : std::size_t{32}) << 20;
}();
constexpr int kCount = 6;

// What CUDA_VISIBLE_DEVICES leaves of them, in its order. As with a driver, the first entry that is
// no GPU ends the list.
const std::vector<int>& visible() {
  static const auto* const all = [] {
    auto* found = new std::vector<int>;
    const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
    if (!text) {
      for (int i = 0; i < kCount; ++i) found->push_back(i);
      return found;
    }
    for (;;) {
      char* end = nullptr;
      const long gpu = std::strtol(text, &end, 10);
      if (end == text || gpu < 0 || gpu >= kCount) return found;
      found->push_back(static_cast<int>(gpu));
      if (*end != ',') return found;
      text = end + 1;
    }
  }();
  return *all;
}

// What a program asked of the driver, written to the file that CUDA_STAND_IN_COUNTS names when the
// program ends.
struct Counts {
  std::atomic<long long> driver_calls{0}, kernels{0}, bytes_to_gpu{0}, bytes_from_gpu{0};
  ~Counts() {
    const char* path = std::getenv("CUDA_STAND_IN_COUNTS");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::fprintf(file,
                 "{\"driver_calls\": %lld, \"kernels\": %lld, \"bytes_to_gpu\": %lld, "
                 "\"bytes_from_gpu\": %lld}\n",
                 driver_calls.load(), kernels.load(), bytes_to_gpu.load(), bytes_from_gpu.load());
    std::fclose(file);
  }
};
Counts counts;

struct Memory {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
  std::size_t used = 0;
};

Memory& memory(std::size_t gpu) {
  static auto* all = new std::vector<Memory>(kCount);
  return (*all)[gpu];
}

// Contexts are numbers from 1, as pointers.
std::size_t gpu_of(CUcontext context) { return reinterpret_cast<std::size_t>(context) - 1; }

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

bool known(CUdeviceptr address, std::size_t bytes) {
  for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
    Memory& m = memory(gpu);
    std::lock_guard lock(m.mutex);
    auto next = m.blocks.upper_bound(address);
    if (next == m.blocks.begin()) continue;
    --next;
    if (address + bytes <= next->first + next->second) return true;
  }
  return false;
}

struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;

  std::uint64_t record() {
    std::lock_guard lock(mutex);
    return ++recorded;
  }
  void reach(std::uint64_t place) {
    std::lock_guard lock(mutex);
    reached = std::max(reached, place);
    changed.notify_all();
  }
  std::uint64_t latest() {
    std::lock_guard lock(mutex);
    return recorded;
  }
  void wait(std::uint64_t place) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= place; });
  }
};

class Queue {
 public:
  Queue() : thread_([this] { work(); }) {}
  ~Queue() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void add(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace

struct CUstream_st {
  Queue queue;
};
struct CUevent_st {
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

namespace {

CUresult copy(CUstream stream, void* to, const void* from, std::size_t bytes) {
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  stream->queue.add([=] { std::memcpy(to, from, bytes); });
  return CUDA_SUCCESS;
}

void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" {

#define STAND_IN __attribute__((visibility("default"))) CUresult

STAND_IN cuInit(unsigned) { return CUDA_SUCCESS; }
STAND_IN cuGetErrorName(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
STAND_IN cuGetErrorString(CUresult, const char** text) {
  *text = "said by a stand-in";
  return CUDA_SUCCESS;
}
STAND_IN cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceGetCount(int* count) {
  *count = static_cast<int>(visible().size());
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(visible().size()))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = visible()[static_cast<std::size_t>(ordinal)];
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "stand-in for a GPU", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  *bytes = kMemory;
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  *value = 0;
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 9;
  if (which == CU_DEVICE_ATTRIBUTE_CLOCK_RATE) *value = 1000000;
  if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 10;
  if (which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) *value = device + 1;
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = 1;
  return CUDA_SUCCESS;
}
STAND_IN cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(static_cast<std::size_t>(device) + 1);
  return CUDA_SUCCESS;
}
STAND_IN cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
STAND_IN cuCtxSetCurrent(CUcontext context) {
  ++counts.driver_calls;
  contexts() = {context};
  return CUDA_SUCCESS;
}
STAND_IN cuCtxPushCurrent(CUcontext context) {
  ++counts.driver_calls;
  contexts().push_back(context);
  return CUDA_SUCCESS;
}
STAND_IN cuCtxPopCurrent(CUcontext* context) {
  ++counts.driver_calls;
  *context = contexts().back();
  contexts().pop_back();
  return CUDA_SUCCESS;
}

STAND_IN cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  ++counts.driver_calls;
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMemory - m.used) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  m.blocks[*address] = bytes;
  m.used += bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemFree(CUdeviceptr address) {
  ++counts.driver_calls;
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  const auto found = m.blocks.find(address);
  if (found == m.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  m.used -= found->second;
  m.blocks.erase(found);
  std::free(host(address));
  return CUDA_SUCCESS;
}
STAND_IN cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  ++counts.driver_calls;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return CUDA_SUCCESS;
}
STAND_IN cuMemFreeHost(void* address) {
  ++counts.driver_calls;
  std::free(address);
  return CUDA_SUCCESS;
}

STAND_IN cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  ++counts.driver_calls;
  counts.bytes_to_gpu += static_cast<long long>(bytes);
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, host(to), from, bytes);
}
STAND_IN cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ++counts.driver_calls;
  counts.bytes_from_gpu += static_cast<long long>(bytes);
  if (!known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, to, host(from), bytes);
}
STAND_IN cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ++counts.driver_calls;
  if (!known(to, bytes) || !known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, host(to), host(from), bytes);
}
STAND_IN cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                           std::size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync(to, from, bytes, stream);
}

STAND_IN cuStreamCreate(CUstream* stream, unsigned) {
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamDestroy(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamSynchronize(CUstream stream) {
  ++counts.driver_calls;
  Progress end;
  stream->queue.add([&] { end.reach(1); });
  end.wait(1);
  return CUDA_SUCCESS;
}
STAND_IN cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  ++counts.driver_calls;
  ++counts.kernels;
  stream->queue.add([=] { function(argument); });
  return CUDA_SUCCESS;
}
STAND_IN cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  ++counts.driver_calls;
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  stream->queue.add([=] { std::memset(host(to), value, bytes); });
  return CUDA_SUCCESS;
}
STAND_IN cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ++counts.driver_calls;
  stream->queue.add(
      [progress = event->progress, place = event->progress->latest()] { progress->wait(place); });
  return CUDA_SUCCESS;
}
STAND_IN cuEventCreate(CUevent* event, unsigned) {
  ++counts.driver_calls;
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
STAND_IN cuEventDestroy(CUevent event) {
  ++counts.driver_calls;
  delete event;
  return CUDA_SUCCESS;
}
STAND_IN cuEventRecord(CUevent event, CUstream stream) {
  ++counts.driver_calls;
  stream->queue.add(
      [progress = event->progress, place = event->progress->record()] { progress->reach(place); });
  return CUDA_SUCCESS;
}
STAND_IN cuEventSynchronize(CUevent event) {
  ++counts.driver_calls;
  event->progress->wait(event->progress->latest());
  return CUDA_SUCCESS;
}
}
