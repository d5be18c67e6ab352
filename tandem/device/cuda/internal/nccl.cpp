#include "tandem/device/cuda/internal/nccl.h"

#include "tandem/core/dtype.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/failure.h"

namespace tandem::cuda {
namespace {

// The first version with means and bfloat16.
constexpr int kMinVersion = 21000;

// 22703 is 2.27.3; versions before 2.9 have one digit less, 2804 is 2.8.4.
std::string version_text(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  return std::to_string(major) + '.' +
         std::to_string(version / 100 % (version < 10000 ? 10 : 100)) + '.' +
         std::to_string(version % 100);
}

bool is_integer(std::int32_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kHalf:
    case DType::kBFloat16: return false;
    default: return true;
  }
}

}  // namespace

Nccl::Nccl()
    : library_({.name = "NCCL",
                .file = "libnccl.so.",
                .majors = {2},
                .without = "values of several GPUs meet in host memory"}) {
#define TANDEM_NCCL_FIND(NAME) library_.find(#NAME, p_##NAME);
  TANDEM_NCCL_FUNCTIONS(TANDEM_NCCL_FIND)
#undef TANDEM_NCCL_FIND
  int version = 0;
  if (!usable() || p_ncclGetVersion(&version) != ncclSuccess) return;
  library_.set_version(version_text(version));
  if (version < kMinVersion)
    library_.disable(library_.path() + " is version " + version_text(version) + ", before 2.10");
}

const Nccl& Nccl::get() {
  static const NeverDestroyed<Nccl> library;
  return *library;
}

std::string Nccl::text_of(ncclResult_t result, const char* call) const {
  const char* const text = p_ncclGetErrorString(result);
  return std::string(call) + " fails with " + (text ? text : "an error") + " (" +
         std::to_string(result) + ')';
}

void Nccl::check(ncclResult_t result, const char* call) const {
  if (result != ncclSuccess) throw Failure(TANDEM_INTERNAL, text_of(result, call));
}

std::optional<ncclDataType_t> nccl_type(std::int32_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat: return ncclFloat32;
    case DType::kDouble: return ncclFloat64;
    case DType::kHalf: return ncclFloat16;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kInt8: return ncclInt8;
    case DType::kUint8: return ncclUint8;
    case DType::kInt32: return ncclInt32;
    case DType::kUint32: return ncclUint32;
    case DType::kInt64: return ncclInt64;
    case DType::kUint64: return ncclUint64;
    default: return std::nullopt;
  }
}

std::optional<ncclRedOp_t> nccl_reduction(std::int32_t reduction) {
  switch (reduction) {
    case TANDEM_REDUCE_SUM: return ncclSum;
    case TANDEM_REDUCE_PRODUCT: return ncclProd;
    case TANDEM_REDUCE_MAX: return ncclMax;
    case TANDEM_REDUCE_MIN: return ncclMin;
    case TANDEM_REDUCE_MEAN: return ncclAvg;
    default: return std::nullopt;
  }
}

// Bools travel as bytes. How NCCL rounds means of integers is its own.
bool nccl_supports(std::int32_t kind, std::int32_t reduction, std::int32_t dtype) {
  switch (kind) {
    case TANDEM_ALL_GATHER:
    case TANDEM_BROADCAST: return nccl_type(dtype) || dtype == static_cast<int>(DType::kBool);
    case TANDEM_ALL_REDUCE:
    case TANDEM_REDUCE_SCATTER:
      return nccl_type(dtype) && nccl_reduction(reduction) &&
             !(reduction == TANDEM_REDUCE_MEAN && is_integer(dtype));
    default: return false;
  }
}

}  // namespace tandem::cuda
