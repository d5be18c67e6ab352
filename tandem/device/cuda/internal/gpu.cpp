#include "tandem/device/cuda/internal/gpu.h"

#include <algorithm>
#include <cstdio>

namespace tandem::cuda {
namespace {

// Lanes for float in a multiprocessor, by the CUDA programming guide's table of arithmetic.
int float_lanes(int major, int minor) {
  if (major < 6 || (major == 6 && minor > 0)) return 128;
  if (major == 6 || major == 7 || (major == 8 && minor == 0)) return 64;
  return 128;
}

}  // namespace

Gpu::Gpu(int ordinal) { check(driver().p_cuDeviceGet(&device_, ordinal), "cuDeviceGet"); }

int Gpu::attribute(CUdevice_attribute which) const {
  int value = 0;
  return driver().p_cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS ? value : 0;
}

int Gpu::compute_capability() const {
  return 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

void Gpu::describe(TandemDeviceProperties* p) const {
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  driver().p_cuDeviceGetName(p->description, sizeof(p->description), device_);
  std::size_t bytes = 0;
  driver().p_cuDeviceTotalMem(&bytes, device_);
  // Some is left for what the driver and NVIDIA's libraries keep beside Tandem's blocks.
  p->memory_bytes = bytes - std::min(bytes / 32, std::size_t{256} << 20);
  // Clocks are in kHz, and memory moves data on both edges of its own.
  p->flops = 2e3 * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) *
             attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) * float_lanes(major, minor);
  p->memory_bandwidth = 2e3 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                        attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  p->compute_streams = 1;
  int version = 0;
  driver().p_cuDriverGetVersion(&version);
  std::snprintf(p->details, sizeof(p->details),
                "compute_capability=%d.%d\ncuda_driver=%d.%d\npci_bus_id=%04x:%02x:%02x.0\n", major,
                minor, version / 1000, version % 1000 / 10,
                static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)),
                static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)),
                static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)));
}

std::string Gpu::model() const {
  char name[256] = {};
  driver().p_cuDeviceGetName(name, sizeof(name) - 1, device_);
  return std::string(name) + "; compute capability " +
         std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) + '.' +
         std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)) + "; " +
         std::to_string(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) + " multiprocessors";
}

CUcontext Gpu::context() {
  CUcontext context = nullptr;
  CUresult result = CUDA_SUCCESS;
  {
    std::lock_guard lock(mutex_);
    if (!context_) result = driver().p_cuDevicePrimaryCtxRetain(&context_, device_);
    context = context_;
  }
  check(result, "cuDevicePrimaryCtxRetain");
  return context;
}

std::string Gpu::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

void Gpu::lose(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = why;
  is_lost_.store(true, std::memory_order_release);
}

void Gpu::check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const std::string text = std::string(call) + " fails with " + text_of(result);
  if (is_fatal(result)) lose(text);
  throw Failure(code_of(result), text);
}

const std::vector<std::unique_ptr<Gpu>>& gpus() {
  static const auto* const all = [] {
    auto* found = new std::vector<std::unique_ptr<Gpu>>;  // streams may end after static objects
    int count = 0;
    if (driver().p_cuDeviceGetCount(&count) != CUDA_SUCCESS) count = 0;
    for (int i = 0; i < count; ++i) found->push_back(std::make_unique<Gpu>(i));
    return found;
  }();
  return *all;
}

ContextScope::ContextScope(Gpu& gpu) {
  gpu.check(driver().p_cuCtxPushCurrent(gpu.context()), "cuCtxPushCurrent");
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  driver().p_cuCtxPopCurrent(&popped);
}

}  // namespace tandem::cuda
