#pragma once

#include <optional>
#include <string>

#include "tandem/device/cuda/internal/nccl_api.h"
#include "tandem/device/cuda/internal/nvidia_library.h"
#include "tandem/device/plugin.h"

namespace tandem::cuda {

// Every function of the library that we use.
#define TANDEM_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)              \
  X(ncclGetErrorString)          \
  X(ncclCommInitAll)             \
  X(ncclCommAbort)               \
  X(ncclCommGetAsyncError)       \
  X(ncclGroupStart)              \
  X(ncclGroupEnd)                \
  X(ncclAllReduce)               \
  X(ncclBroadcast)               \
  X(ncclAllGather)               \
  X(ncclReduceScatter)

/// NVIDIA's library by which GPUs exchange values.
class Nccl {
 public:
  /// The process' one, opened at the first call. Never closed.
  static const Nccl& get();
  Nccl();

  bool usable() const { return library_.usable(); }
  std::string report() const { return library_.report(); }
  /// Throws Failure for a failed call.
  void check(ncclResult_t result, const char* call) const;
  /// "ncclAllReduce fails with unhandled cuda error (1)".
  std::string text_of(ncclResult_t result, const char* call) const;

#define TANDEM_NCCL_POINTER(NAME) decltype(&::NAME) p_##NAME = nullptr;
  TANDEM_NCCL_FUNCTIONS(TANDEM_NCCL_POINTER)
#undef TANDEM_NCCL_POINTER

 private:
  NvidiaLibrary library_;
};

/// NCCL's number of TensorFlow's dtype; nothing for those that it does not know.
std::optional<ncclDataType_t> nccl_type(std::int32_t dtype);
/// NCCL's number of a TandemReduction.
std::optional<ncclRedOp_t> nccl_reduction(std::int32_t reduction);

/// See TandemPluginApi::collective_supported.
bool nccl_supports(std::int32_t kind, std::int32_t reduction, std::int32_t dtype);

}  // namespace tandem::cuda
