// A stand-in for a CUDA driver: the functions that libtandem_cuda.so uses, on host memory and
// threads. It is no GPU and nothing is measured on it; with it the conformance suite runs through
// the library's own queues, events and error paths on machines without one. It is stricter than a
// driver where that finds mistakes: copies always come late, and addresses and contexts are
// checked.

#include "tests/plugin/cuda_stand_in.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/cuda/internal/host_function.h"

#include "tests/plugin/cuda_stand_in_memory.h"
#include "tests/plugin/host_module.h"

using namespace stand_in;

namespace {

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

// What a program asked of the driver.
struct Counts {
  std::atomic<long long> driver_calls{0}, kernels{0}, graph_launches{0}, bytes_to_gpu{0},
      bytes_from_gpu{0}, managed_blocks{0};
};
Counts counts;

// Calls that fail on request (cuda_stand_in.h).
struct Failures {
  std::atomic<long long> left{0};  // calls until the one that fails, with it; 0: none
  std::atomic<int> result{0};
  std::atomic<bool> sticks{false};
  // What every call fails with once an error has stuck. GPUs do nothing any more then.
  std::atomic<int> stuck{CUDA_SUCCESS};
  std::shared_mutex working;  // shared while a GPU does something
  std::mutex naming;          // for the next three: calls of one function that fail
  std::string name;
  int result_of_name = 0;
  std::atomic<long long> left_of_name{0};
};
Failures& failures() {
  static auto* all = new Failures;  // streams' threads may outlive static objects
  return *all;
}

}  // namespace

namespace stand_in {

CUresult enter(const char* name) {
  ++counts.driver_calls;
  Failures& f = failures();
  if (f.stuck != CUDA_SUCCESS) return static_cast<CUresult>(f.stuck.load());
  if (f.left_of_name.load() > 0) {
    std::lock_guard lock(f.naming);
    if (f.name == name && f.left_of_name > 0) {
      --f.left_of_name;
      return static_cast<CUresult>(f.result_of_name);
    }
  }
  if (f.left.load() == 0 || f.left.fetch_sub(1) != 1) return CUDA_SUCCESS;
  static const bool verbose = std::getenv("CUDA_STAND_IN_VERBOSE") != nullptr;
  if (verbose) std::fprintf(stderr, "stand-in: %s fails with %d\n", name, f.result.load());
  if (f.sticks) {
    std::unique_lock lock(f.working);
    f.stuck = f.result.load();
  }
  return static_cast<CUresult>(f.result.load());
}

std::size_t gpu_bytes() {
  static const std::size_t bytes = [] {
    const char* mib = std::getenv("CUDA_STAND_IN_MIB");
    return (mib ? std::strtoul(mib, nullptr, 10) : std::size_t{32}) << 20;
  }();
  return bytes;
}

Memory& memory(std::size_t gpu) {
  static auto* all = new std::vector<Memory>(kCount);
  return (*all)[gpu];
}

std::size_t free_bytes(const Memory& memory) {
  return gpu_bytes() - std::min(gpu_bytes(), memory.used + memory.others);
}

}  // namespace stand_in

namespace {

// Objects of the driver's that exist.
struct Objects {
  std::atomic<long long> streams{0}, events{0}, graphs{0}, host_blocks{0};
};
Objects objects;

// Contexts are numbers from 1, as pointers.
std::size_t gpu_of(CUcontext context) { return reinterpret_cast<std::size_t>(context) - 1; }

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

bool holds(const std::map<CUdeviceptr, std::size_t>& blocks, CUdeviceptr address,
           std::size_t bytes) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}

// Host memory that GPUs can reach, at the same address.
struct Pinned {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
};
Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}

bool known(CUdeviceptr address, std::size_t bytes) {
  if (stand_in::is_mapped(address, bytes)) return true;
  {
    std::lock_guard lock(pinned().mutex);
    if (holds(pinned().blocks, address, bytes)) return true;
  }
  for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
    Memory& m = memory(gpu);
    std::lock_guard lock(m.mutex);
    if (holds(m.blocks, address, bytes)) return true;
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

// What a stream's thread works for.
struct Worker {
  int gpu = 0;
  unsigned stream = 0;
};
thread_local Worker worker;

std::atomic<void (*)(const StandInActivity&)> observer{nullptr};

// Something that a GPU does, for its duration.
class Activity {
 public:
  Activity(StandInActivity::Kind kind, std::size_t bytes, const char* name = nullptr)
      : activity_{kind, name, bytes, worker.gpu, worker.stream, true} {
    notify();
  }
  ~Activity() {
    activity_.begins = false;
    notify();
  }
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  void notify() const {
    if (const auto seen = observer.load()) seen(activity_);
  }
  StandInActivity activity_;
};

class Queue {
 public:
  Queue() : worker_(next_worker()), thread_([this] { work(); }) {}
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
  static Worker next_worker() {
    static std::atomic<unsigned> streams{0};
    return {contexts().empty() ? 0 : static_cast<int>(gpu_of(contexts().back())), ++streams};
  }
  void work() {
    worker = worker_;
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
  const Worker worker_;
  std::thread thread_;
};

}  // namespace

// A node of a graph: what it does, from what it was given last.
struct CUgraphNode_st {
  std::size_t number = 0;
};
struct CUgraph_st {
  CUgraph_st() { ++objects.graphs; }
  ~CUgraph_st() { --objects.graphs; }
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::function<void()>> work;  // by number of the node
  long long kernels = 0, bytes_to_gpu = 0, bytes_from_gpu = 0;
};

struct CUstream_st {
  CUstream_st() { ++objects.streams; }
  ~CUstream_st() { --objects.streams; }
  Queue queue;
  std::unique_ptr<CUgraph_st> capturing;
  // Something that a GPU whose error has stuck does not do any more.
  void add_work(std::function<void()> work) {
    if (capturing) return capturing->work.push_back(std::move(work));
    queue.add([work = std::move(work)] {
      std::shared_lock lock(failures().working);
      if (failures().stuck == CUDA_SUCCESS) work();
    });
  }
};
struct CUevent_st {
  CUevent_st() { ++objects.events; }
  ~CUevent_st() { --objects.events; }
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  // When it was last come to, for events that were made to measure time.
  const std::shared_ptr<std::atomic<std::int64_t>> reached_at =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

struct CUgraphExec_st {
  CUgraphExec_st() { ++objects.graphs; }
  ~CUgraphExec_st() { --objects.graphs; }
  std::vector<std::function<void()>> work;
  long long kernels = 0, bytes_to_gpu = 0, bytes_from_gpu = 0;
};

namespace {

CUresult copy(CUstream stream, StandInActivity::Kind kind, void* to, const void* from,
              std::size_t bytes) {
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  stream->add_work([=] {
    const Activity activity(kind, bytes);
    std::memcpy(to, from, bytes);
  });
  return CUDA_SUCCESS;
}

// A launch with copies of its parameters.
class Launch {
 public:
  Launch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared_bytes,
         void** parameters)
      : function_(reinterpret_cast<const tandem::cuda::HostFunction*>(function)),
        shared_bytes_(shared_bytes) {
    std::copy_n(grid, 3, grid_);
    std::copy_n(block, 3, block_);
    for (std::size_t i = 0; i < function_->num_parameters; ++i) {
      constexpr std::size_t kUnit = sizeof(std::max_align_t);
      const std::size_t bytes = function_->parameter_sizes[i];
      values_.emplace_back((bytes + kUnit - 1) / kUnit);
      std::memcpy(values_.back().data(), parameters[i], bytes);
    }
  }
  void operator()() const {
    std::vector<void*> pointers;
    for (const auto& value : values_)
      pointers.push_back(const_cast<std::max_align_t*>(value.data()));
    const Activity activity(StandInActivity::kKernel, 0, function_->name);
    function_->run(*function_, grid_, block_, shared_bytes_, pointers.data());
  }

 private:
  const tandem::cuda::HostFunction* function_;
  unsigned grid_[3], block_[3], shared_bytes_;
  std::vector<std::vector<std::max_align_t>> values_;
};

Launch launch_of(const CUDA_KERNEL_NODE_PARAMS& p) {
  const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const unsigned block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  return {p.func, grid, block, p.sharedMemBytes, p.kernelParams};
}

std::function<void()> work_of(const CUDA_MEMCPY3D& p) {
  void* to = p.dstMemoryType == CU_MEMORYTYPE_HOST ? p.dstHost : host(p.dstDevice);
  const void* from = p.srcMemoryType == CU_MEMORYTYPE_HOST ? p.srcHost : host(p.srcDevice);
  const auto kind = p.dstMemoryType == CU_MEMORYTYPE_HOST   ? StandInActivity::kToHost
                    : p.srcMemoryType == CU_MEMORYTYPE_HOST ? StandInActivity::kToGpu
                                                            : StandInActivity::kCopy;
  return [kind, to, from, bytes = p.WidthInBytes] {
    const Activity activity(kind, bytes);
    std::memcpy(to, from, bytes);
  };
}

bool valid(const CUDA_MEMCPY3D& p) {
  return p.Height == 1 && p.Depth == 1 &&
         (p.dstMemoryType == CU_MEMORYTYPE_HOST || known(p.dstDevice, p.WidthInBytes)) &&
         (p.srcMemoryType == CU_MEMORYTYPE_HOST || known(p.srcDevice, p.WidthInBytes));
}

std::function<void()> work_of(const CUDA_MEMSET_NODE_PARAMS& p) {
  return [p] {
    const Activity activity(StandInActivity::kSet, p.width);
    std::memset(host(p.dst), static_cast<int>(p.value), p.width);
  };
}

// All that a captured graph does.
std::function<void()> work_of(CUgraph graph) {
  return [all = graph->work] {
    for (const auto& work : all) work();
  };
}

// Nodes here come one after the other, as all graphs of Tandem's do.
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  std::function<void()> work) {
  const std::size_t number = graph->nodes.size();
  if (count != (number == 0 ? 0 : 1) || (count == 1 && after[0]->number + 1 != number))
    return CUDA_ERROR_NOT_SUPPORTED;
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  graph->nodes.back()->number = number;
  graph->work.push_back(std::move(work));
  *node = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

STAND_IN cuInit(unsigned) { return CUDA_SUCCESS; }
STAND_IN cuGetErrorName(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == CUDA_ERROR_ILLEGAL_ADDRESS   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == CUDA_ERROR_ECC_UNCORRECTABLE ? "CUDA_ERROR_ECC_UNCORRECTABLE"
                                                   : "CUDA_ERROR_OTHER";
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
  *bytes = gpu_bytes();
  return CUDA_SUCCESS;
}
STAND_IN cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  *value = 0;
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 9;
  if (which == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) *value = 1;
  // Tests of drivers without reserved ranges.
  if (which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
    *value = std::getenv("CUDA_STAND_IN_WITHOUT_RANGES") ? 0 : 1;
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
  ENTER();
  contexts() = {context};
  return CUDA_SUCCESS;
}
STAND_IN cuCtxPushCurrent(CUcontext context) {
  ENTER();
  contexts().push_back(context);
  return CUDA_SUCCESS;
}
STAND_IN cuCtxPopCurrent(CUcontext* context) {
  ENTER();
  *context = contexts().back();
  contexts().pop_back();
  return CUDA_SUCCESS;
}

STAND_IN cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > free_bytes(m)) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  m.blocks[*address] = bytes;
  m.used += bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemFree(CUdeviceptr address) {
  ENTER();
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
STAND_IN cuMemGetInfo(std::size_t* free, std::size_t* total) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  *free = free_bytes(m);
  *total = gpu_bytes();
  return CUDA_SUCCESS;
}
STAND_IN cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  ++counts.managed_blocks;
  return cuMemAlloc(address, bytes);
}
STAND_IN cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  ENTER();
  ++objects.host_blocks;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::lock_guard lock(pinned().mutex);
  pinned().blocks[reinterpret_cast<CUdeviceptr>(*address)] = bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemHostGetDevicePointer(CUdeviceptr* seen, void* address, unsigned) {
  ENTER();
  *seen = reinterpret_cast<CUdeviceptr>(address);
  std::lock_guard lock(pinned().mutex);
  return holds(pinned().blocks, *seen, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN cuMemFreeHost(void* address) {
  --objects.host_blocks;
  {
    std::lock_guard lock(pinned().mutex);
    pinned().blocks.erase(reinterpret_cast<CUdeviceptr>(address));
  }
  std::free(address);
  return enter(__func__);
}

STAND_IN cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  ENTER();
  counts.bytes_to_gpu += static_cast<long long>(bytes);
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kToGpu, host(to), from, bytes);
}
STAND_IN cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER();
  counts.bytes_from_gpu += static_cast<long long>(bytes);
  if (!known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kToHost, to, host(from), bytes);
}
STAND_IN cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER();
  if (!known(to, bytes) || !known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kCopy, host(to), host(from), bytes);
}
STAND_IN cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                           std::size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync(to, from, bytes, stream);
}

STAND_IN cuStreamCreate(CUstream* stream, unsigned) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamDestroy(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamSynchronize(CUstream stream) {
  ENTER();
  Progress end;
  stream->queue.add([&] { end.reach(1); });
  end.wait(1);
  return CUDA_SUCCESS;
}
STAND_IN cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  ENTER();
  if (stream->capturing) return CUDA_ERROR_INVALID_VALUE;
  stream->capturing = std::make_unique<CUgraph_st>();
  return CUDA_SUCCESS;
}
STAND_IN cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  if (!stream->capturing) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->capturing);
  ENTER();
  *graph = captured.release();
  return CUDA_SUCCESS;
}
STAND_IN cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void**) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  ++counts.kernels;
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  stream->add_work(Launch(function, grid, block, shared_bytes, parameters));
  return CUDA_SUCCESS;
}
// What the stand-in for NVRTC makes is a shared object (tests/plugin/host_module.h). It stays
// loaded.
STAND_IN cuModuleLoadData(CUmodule* module, const void* image) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  HostModule header = {};
  std::memcpy(&header, image, sizeof(header.magic));
  if (std::memcmp(header.magic, kHostModule, sizeof(kHostModule)) != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  std::memcpy(&header, image, sizeof(header));
  char path[] = "/tmp/tandem-module-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  const auto* const bytes = static_cast<const char*>(image) + sizeof(header);
  const bool written = write(file, bytes, header.bytes) == static_cast<ssize_t>(header.bytes);
  close(file);
  void* const opened = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!opened) std::fprintf(stderr, "stand-in: %s\n", written ? dlerror() : "no space in /tmp");
  unlink(path);
  if (!opened) return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(opened);
  return CUDA_SUCCESS;
}
STAND_IN cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  ENTER();
  using Get = const tandem::cuda::HostFunction* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(module, (std::string(name) + "_function").c_str()));
  if (!get) return CUDA_ERROR_INVALID_VALUE;
  *function = reinterpret_cast<CUfunction>(const_cast<tandem::cuda::HostFunction*>(get()));
  return CUDA_SUCCESS;
}
STAND_IN cuGraphCreate(CUgraph* graph, unsigned) {
  ENTER();
  *graph = new CUgraph_st;
  return CUDA_SUCCESS;
}
STAND_IN cuGraphDestroy(CUgraph graph) {
  delete graph;
  return enter(__func__);
}
STAND_IN cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  ENTER();
  ++graph->kernels;
  return add_node(node, graph, after, count, launch_of(*p));
}
STAND_IN cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMCPY3D* p, CUcontext) {
  ENTER();
  if (!valid(*p)) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = static_cast<long long>(p->WidthInBytes);
  if (p->srcMemoryType == CU_MEMORYTYPE_HOST) graph->bytes_to_gpu += bytes;
  if (p->dstMemoryType == CU_MEMORYTYPE_HOST) graph->bytes_from_gpu += bytes;
  return add_node(node, graph, after, count, work_of(*p));
}
STAND_IN cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  ENTER();
  if (!known(p->dst, p->width)) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, count, work_of(*p));
}
STAND_IN cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  std::size_t count, CUgraph child) {
  ENTER();
  graph->kernels += child->kernels;
  return add_node(node, graph, after, count, work_of(child));
}
STAND_IN cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  ENTER();
  *made = new CUgraphExec_st;
  (*made)->work = graph->work;
  (*made)->kernels = graph->kernels;
  (*made)->bytes_to_gpu = graph->bytes_to_gpu;
  (*made)->bytes_from_gpu = graph->bytes_from_gpu;
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecDestroy(CUgraphExec made) {
  delete made;
  return enter(__func__);
}
STAND_IN cuGraphExecKernelNodeSetParams(CUgraphExec made, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* p) {
  ENTER();
  made->work[node->number] = launch_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecMemcpyNodeSetParams(CUgraphExec made, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                        CUcontext) {
  ENTER();
  if (!valid(*p)) return CUDA_ERROR_INVALID_VALUE;
  made->work[node->number] = work_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecMemsetNodeSetParams(CUgraphExec made, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  ENTER();
  if (!known(p->dst, p->width)) return CUDA_ERROR_INVALID_VALUE;
  made->work[node->number] = work_of(*p);
  return CUDA_SUCCESS;
}
STAND_IN cuGraphExecChildGraphNodeSetParams(CUgraphExec made, CUgraphNode node, CUgraph child) {
  ENTER();
  made->work[node->number] = work_of(child);
  return CUDA_SUCCESS;
}
// As it is now: later changes are for later launches.
STAND_IN cuGraphLaunch(CUgraphExec made, CUstream stream) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  ++counts.graph_launches;
  counts.kernels += made->kernels;
  counts.bytes_to_gpu += made->bytes_to_gpu;
  counts.bytes_from_gpu += made->bytes_from_gpu;
  stream->add_work([work = made->work] {
    for (const auto& node : work) node();
  });
  return CUDA_SUCCESS;
}
STAND_IN cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  ENTER();
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  stream->add_work([=] {
    const Activity activity(StandInActivity::kSet, bytes);
    std::memset(host(to), value, bytes);
  });
  return CUDA_SUCCESS;
}
STAND_IN cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER();
  stream->queue.add(
      [progress = event->progress, place = event->progress->latest()] { progress->wait(place); });
  return CUDA_SUCCESS;
}
STAND_IN cuEventCreate(CUevent* event, unsigned) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
STAND_IN cuEventDestroy(CUevent event) {
  delete event;
  return enter(__func__);
}
STAND_IN cuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  stream->queue.add(
      [progress = event->progress, place = event->progress->record(), at = event->reached_at] {
        *at = std::chrono::steady_clock::now().time_since_epoch().count();
        progress->reach(place);
      });
  return CUDA_SUCCESS;
}
STAND_IN cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  ENTER();
  using Ticks = std::chrono::steady_clock::duration;
  const Ticks passed(end->reached_at->load() - begin->reached_at->load());
  *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
  return CUDA_SUCCESS;
}
STAND_IN cuEventSynchronize(CUevent event) {
  ENTER();
  event->progress->wait(event->progress->latest());
  return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) const StandInControl* cuda_stand_in_control() {
  static const StandInControl control = {
      .calls = [] { return counts.driver_calls.load(); },
      .fail =
          [](long long nth, int result, int sticks) {
            failures().result = result;
            failures().sticks = sticks != 0;
            failures().left = nth;
          },
      .pending = [] { return failures().left.load() > 0 ? 1 : 0; },
      .used =
          [] {
            StandInUse use = {};
            for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
              Memory& m = memory(gpu);
              std::lock_guard lock(m.mutex);
              use.device_bytes += static_cast<long long>(m.used);
            }
            use.streams = objects.streams;
            use.events = objects.events;
            use.graphs = objects.graphs;
            use.host_blocks = objects.host_blocks;
            use.reserved_ranges = stand_in::reserved_ranges();
            use.managed_blocks = counts.managed_blocks;
            return use;
          },
      .graph_launches = [] { return counts.graph_launches.load(); },
      .kernels = [] { return counts.kernels.load(); },
      .library_call = [](const char* name) { return static_cast<int>(enter(name)); },
      .add_kernel =
          [](CUstream_st* stream, std::function<void()> work) {
            if (stream->capturing) {
              ++stream->capturing->kernels;
            } else {
              ++counts.kernels;
            }
            stream->add_work(std::move(work));
          },
      .is_device_memory =
          [](const void* address, std::size_t bytes) {
            return known(reinterpret_cast<CUdeviceptr>(address), bytes) ? 1 : 0;
          },
      .counts =
          [] {
            return StandInCounts{counts.driver_calls, counts.kernels, counts.graph_launches,
                                 counts.bytes_to_gpu, counts.bytes_from_gpu};
          },
      .fail_function =
          [](const char* name, long long count, int result) {
            Failures& f = failures();
            std::lock_guard lock(f.naming);
            f.name = name;
            f.result_of_name = result;
            f.left_of_name = count;
          },
      .function_pending = [] { return failures().left_of_name.load(); },
      .leave_free =
          [](long long bytes) {
            for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
              Memory& m = memory(gpu);
              std::lock_guard lock(m.mutex);
              m.others = 0;
              const auto left = static_cast<long long>(free_bytes(m));
              if (bytes >= 0) m.others = static_cast<std::size_t>(std::max(left - bytes, 0LL));
            }
          },
      .observe = [](void (*seen)(const StandInActivity&)) { observer = seen; },
  };
  return &control;
}
}
