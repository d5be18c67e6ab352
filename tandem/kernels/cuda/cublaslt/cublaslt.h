#pragma once

#include <string>

#include "tandem/device/cuda/internal/nvidia_library.h"
#include "tandem/kernels/cuda/cublaslt/cublaslt_api.h"

namespace tandem::cuda {

// Every function of the library that we use.
#define TANDEM_CUBLASLT_FUNCTIONS(X)      \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoCheck)              \
  X(cublasLtMatmul)

/// NVIDIA's library for products of matrices.
class CublasLt {
 public:
  CublasLt();

  bool usable() const { return library_.usable(); }
  /// "13.0.2"
  const std::string& version() const { return version_; }
  std::string report() const { return library_.report(); }

#define TANDEM_CUBLASLT_POINTER(NAME) decltype(&::NAME) p_##NAME = nullptr;
  TANDEM_CUBLASLT_FUNCTIONS(TANDEM_CUBLASLT_POINTER)
#undef TANDEM_CUBLASLT_POINTER

 private:
  void try_it();

  NvidiaLibrary library_;
  std::string version_;
};

/// Opened by the first call. Never closed.
const CublasLt& cublaslt();

/// Throws Failure for a failed call.
void check(cublasStatus_t status, const char* call);

}  // namespace tandem::cuda
