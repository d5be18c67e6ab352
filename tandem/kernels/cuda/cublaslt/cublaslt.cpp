#include "tandem/kernels/cuda/cublaslt/cublaslt.h"

#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {
namespace {

const char* name_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "a status";
}

// 130002 is 13.0.2.
std::string version_text(std::size_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

}  // namespace

CublasLt::CublasLt()
    : library_({.name = "cuBLASLt",
                .file = "libcublasLt.so.",
                .majors = toolkit_majors(),
                .without = "products of matrices run by Tandem's own kernels"}) {
#define TANDEM_CUBLASLT_FIND(NAME) library_.find(#NAME, p_##NAME);
  TANDEM_CUBLASLT_FUNCTIONS(TANDEM_CUBLASLT_FIND)
#undef TANDEM_CUBLASLT_FIND
  if (!usable()) return;
  const std::size_t version = p_cublasLtGetVersion();
  version_ = version_text(version);
  library_.set_version(version_);
  if (version / 10000 != static_cast<std::size_t>(library_.major()))
    library_.disable(library_.path() + " says that it is version " + version_);
  if (usable() && !gpus().empty()) try_it();
}

// A library that does not go with the driver is noticed when it starts.
void CublasLt::try_it() {
  try {
    const ContextScope context(*gpus().front());
    cublasLtHandle_t handle = nullptr;
    check(p_cublasLtCreate(&handle), "cublasLtCreate");
    p_cublasLtDestroy(handle);
  } catch (const Failure& failure) {
    // Memory may be there later.
    if (failure.code() != TANDEM_RESOURCE_EXHAUSTED) library_.disable(failure.what());
  }
}

const CublasLt& cublaslt() {
  static const NeverDestroyed<CublasLt> library;
  return *library;
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Failure(
      status == CUBLAS_STATUS_ALLOC_FAILED ? TANDEM_RESOURCE_EXHAUSTED : TANDEM_INTERNAL,
      std::string(call) + " fails with " + name_of(status) + " (" + std::to_string(status) + ')');
}

}  // namespace tandem::cuda
