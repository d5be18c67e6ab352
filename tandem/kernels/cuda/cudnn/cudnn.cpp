#include "tandem/kernels/cuda/cudnn/cudnn.h"

#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {
namespace {

// 91900 is 9.19.0.
std::string version_text(std::size_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

bool is_out_of_memory(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

}  // namespace

Cudnn::Cudnn()
    : library_({.name = "cuDNN",
                .file = "libcudnn.so.",
                .majors = {9},
                .without = "convolutions run by Tandem's own kernels"}) {
#define TANDEM_CUDNN_FIND(NAME) library_.find(#NAME, p_##NAME);
  TANDEM_CUDNN_FUNCTIONS(TANDEM_CUDNN_FIND)
#undef TANDEM_CUDNN_FIND
  if (!usable()) return;
  const std::size_t version = p_cudnnGetVersion();
  version_ = version_text(version);
  library_.set_version(version_);
  int driver_version = 0;
  driver().p_cuDriverGetVersion(&driver_version);
  const auto toolkit = static_cast<int>(p_cudnnGetCudartVersion() / 1000);
  if (version / 10000 != 9) {
    library_.disable(library_.path() + " says that it is version " + version_);
  } else if (toolkit > driver_version / 1000) {
    library_.disable(library_.path() + " is for CUDA " + std::to_string(toolkit) +
                     ", and the driver serves CUDA " + std::to_string(driver_version / 1000));
  }
  if (usable() && !gpus().empty()) try_it();
}

// A library that does not go with the driver is noticed when it starts.
void Cudnn::try_it() {
  try {
    const ContextScope context(*gpus().front());
    cudnnHandle_t handle = nullptr;
    const cudnnStatus_t status = p_cudnnCreate(&handle);
    if (is_out_of_memory(status)) return;  // it may be there later
    if (status != CUDNN_STATUS_SUCCESS)
      throw Failure(TANDEM_INTERNAL,
                    std::string("cudnnCreate fails with ") + p_cudnnGetErrorString(status));
    p_cudnnDestroy(handle);
  } catch (const Failure& failure) {
    library_.disable(failure.what());
  }
}

const Cudnn& cudnn() {
  static const NeverDestroyed<Cudnn> library;
  return *library;
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Failure(is_out_of_memory(status) ? TANDEM_RESOURCE_EXHAUSTED : TANDEM_INTERNAL,
                std::string(call) + " fails with " + cudnn().p_cudnnGetErrorString(status));
}

bool is_unsupported(cudnnStatus_t status) {
  // Graphs that break an engine's rules are reported as bad parameters.
  return status >= CUDNN_STATUS_BAD_PARAM && status < CUDNN_STATUS_INTERNAL_ERROR;
}

}  // namespace tandem::cuda
