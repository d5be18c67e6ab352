#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/cuda/internal/failure.h"
#include "tandem/device/plugin.h"

namespace tandem::cuda {

// Every function of the driver that we use, by the names that the header gives them (cuMemAlloc
// stands for cuMemAlloc_v2).
#define TANDEM_CUDA_FUNCTIONS(X)        \
  X(cuInit)                             \
  X(cuGetErrorName)                     \
  X(cuGetErrorString)                   \
  X(cuDriverGetVersion)                 \
  X(cuDeviceGetCount)                   \
  X(cuDeviceGet)                        \
  X(cuDeviceGetName)                    \
  X(cuDeviceTotalMem)                   \
  X(cuDeviceGetAttribute)               \
  X(cuDeviceCanAccessPeer)              \
  X(cuDevicePrimaryCtxRetain)           \
  X(cuDevicePrimaryCtxRelease)          \
  X(cuCtxSetCurrent)                    \
  X(cuCtxPushCurrent)                   \
  X(cuCtxPopCurrent)                    \
  X(cuMemAlloc)                         \
  X(cuMemFree)                          \
  X(cuMemHostAlloc)                     \
  X(cuMemFreeHost)                      \
  X(cuMemcpyHtoDAsync)                  \
  X(cuMemcpyDtoHAsync)                  \
  X(cuMemcpyDtoDAsync)                  \
  X(cuMemcpyPeerAsync)                  \
  X(cuStreamCreate)                     \
  X(cuStreamDestroy)                    \
  X(cuStreamSynchronize)                \
  X(cuStreamWaitEvent)                  \
  X(cuStreamBeginCapture)               \
  X(cuStreamEndCapture)                 \
  X(cuModuleLoadData)                   \
  X(cuModuleGetFunction)                \
  X(cuLaunchKernel)                     \
  X(cuGraphCreate)                      \
  X(cuGraphDestroy)                     \
  X(cuGraphAddKernelNode)               \
  X(cuGraphAddMemcpyNode)               \
  X(cuGraphAddMemsetNode)               \
  X(cuGraphAddChildGraphNode)           \
  X(cuGraphInstantiateWithFlags)        \
  X(cuGraphExecDestroy)                 \
  X(cuGraphExecKernelNodeSetParams)     \
  X(cuGraphExecMemcpyNodeSetParams)     \
  X(cuGraphExecMemsetNodeSetParams)     \
  X(cuGraphExecChildGraphNodeSetParams) \
  X(cuGraphLaunch)                      \
  X(cuMemsetD8Async)                    \
  X(cuEventCreate)                      \
  X(cuEventDestroy)                     \
  X(cuEventRecord)                      \
  X(cuEventSynchronize)                 \
  X(cuEventElapsedTime)

// Those that a driver may lack: null then.
#define TANDEM_CUDA_OPTIONAL_FUNCTIONS(X) \
  X(cuMemGetInfo)                         \
  X(cuMemAllocManaged)                    \
  X(cuMemHostGetDevicePointer)            \
  X(cuMemAddressReserve)                  \
  X(cuMemAddressFree)                     \
  X(cuMemGetAllocationGranularity)        \
  X(cuMemCreate)                          \
  X(cuMemRelease)                         \
  X(cuMemMap)                             \
  X(cuMemUnmap)                           \
  X(cuMemSetAccess)

/// The driver, opened at run time. `d().cuInit(0)` calls it.
struct Driver {
#define TANDEM_CUDA_POINTER(NAME) decltype(&::NAME) p_##NAME = nullptr;
  TANDEM_CUDA_FUNCTIONS(TANDEM_CUDA_POINTER)
  TANDEM_CUDA_OPTIONAL_FUNCTIONS(TANDEM_CUDA_POINTER)
#undef TANDEM_CUDA_POINTER
};

const Driver& driver();

/// Opens the library and all functions, and starts the driver. Throws Failure.
void open_driver(const std::string& library);

/// Major versions of the CUDA toolkit whose libraries Tandem knows and the driver serves, the
/// newest first.
std::vector<int> toolkit_majors();

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string text_of(CUresult result);
/// The TandemCode for a failed call.
std::int32_t code_of(CUresult result);
/// True for failures after which nothing works on the GPU any more, until the process ends.
bool is_fatal(CUresult result);

void set(TandemStatus* status, std::int32_t code, const std::string& text);

/// Runs the body; what it throws goes to the status.
template <class Body>
void guarded(TandemStatus* status, Body body) {
  try {
    body();
  } catch (const Failure& failure) {
    set(status, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    set(status, TANDEM_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    set(status, TANDEM_INTERNAL, error.what());
  }
}

}  // namespace tandem::cuda
