#pragma once

#include <string>

#include "tandem/device/cuda/internal/nvidia_library.h"
#include "tandem/kernels/cuda/cudnn/cudnn_api.h"

namespace tandem::cuda {

// Every function of the library that we use.
#define TANDEM_CUDNN_FUNCTIONS(X)  \
  X(cudnnGetVersion)               \
  X(cudnnGetCudartVersion)         \
  X(cudnnGetErrorString)           \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendExecute)

/// NVIDIA's library for convolutions, through its graph interface.
class Cudnn {
 public:
  Cudnn();

  bool usable() const { return library_.usable(); }
  /// "9.19.0"
  const std::string& version() const { return version_; }
  std::string report() const { return library_.report(); }

#define TANDEM_CUDNN_POINTER(NAME) decltype(&::NAME) p_##NAME = nullptr;
  TANDEM_CUDNN_FUNCTIONS(TANDEM_CUDNN_POINTER)
#undef TANDEM_CUDNN_POINTER

 private:
  void try_it();

  NvidiaLibrary library_;
  std::string version_;
};

/// Opened by the first call. Never closed.
const Cudnn& cudnn();

/// Throws Failure for a failed call.
void check(cudnnStatus_t status, const char* call);
/// Whether a call failed because the library has no way to do it.
bool is_unsupported(cudnnStatus_t status);

}  // namespace tandem::cuda
