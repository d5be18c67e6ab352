// The stand-in's GPUs and their contexts.

#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/contexts.h"
#include "tests/plugin/cuda_stand_in/memory.h"

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

}  // namespace

namespace stand_in {

// Contexts are numbers from 1, as pointers.
std::size_t gpu_of(CUcontext context) { return reinterpret_cast<std::size_t>(context) - 1; }

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

}  // namespace stand_in

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
  // Tests of drivers of other versions.
  const char* const given = std::getenv("CUDA_STAND_IN_VERSION");
  *version = given ? std::atoi(given) : 13000;
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
}
