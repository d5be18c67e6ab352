// A stand-in for cuBLASLt: the functions that Tandem uses, computed by plain loops on the stand-in
// for the driver. It knows three algorithms, with and without workspace, which give the same; it is
// stricter than the library where that finds mistakes: operands must lie in device memory and be
// aligned as they were said to be, and the whole workspace is written.

#include "tests/cuda/cublaslt_stand_in.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "tandem/kernels/cuda/cublaslt/cublaslt_api.h"

#include "tests/cuda/library_stand_in.h"

namespace {

using stand_in::driver;
using stand_in::Number;

struct Counts {
  std::atomic<long long> heuristics{0}, checks{0}, products{0};
  std::atomic<long long> tf32{0};
};
Counts counts;

constexpr std::size_t kWorkspaces[] = {0, 512, 4096};  // by algorithm
constexpr std::uint64_t kMark = 0x57a4d1;              // of an algorithm of this library

}  // namespace

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transpose_a = 0, transpose_b = 0;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct cublasLtMatrixLayoutOpaque {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;
  std::int32_t batch = 1;
  std::int64_t step = 0;
};
struct cublasLtMatmulPreferenceOpaque {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

Number number_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return Number::kDouble;
    case CUDA_R_16F: return Number::kHalf;
    case CUDA_R_16BF: return Number::kBFloat16;
    case CUDA_R_32F: break;
  }
  return Number::kFloat;
}
std::size_t size_of(cudaDataType_t type) { return stand_in::size_of(number_of(type)); }
double element(const void* from, cudaDataType_t type, std::int64_t i) {
  return stand_in::element(from, number_of(type), i);
}
void put(void* to, cudaDataType_t type, std::int64_t i, double value) {
  stand_in::put(to, number_of(type), i, value);
}

double activated(std::uint32_t epilogue, double x) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x < 0 ? 0 : x;
  if (epilogue & CUBLASLT_EPILOGUE_GELU) return stand_in::gelu_tanh(x);
  return x;
}

struct Operand {
  cublasLtMatrixLayoutOpaque layout;
  const void* at;

  std::size_t bytes() const {
    const std::int64_t last =
        (layout.columns - 1) * layout.leading + layout.rows - 1 + (layout.batch - 1) * layout.step;
    return static_cast<std::size_t>(last + 1) * size_of(layout.type);
  }
  double operator()(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return element(at, layout.type, batch * layout.step + column * layout.leading + row);
  }
};

bool is_there(const Operand& o) {
  return driver().is_device_memory(o.at, o.bytes()) != 0 &&
         reinterpret_cast<std::uintptr_t>(o.at) % size_of(o.layout.type) == 0;
}

struct Job {
  cublasLtMatmulDescOpaque desc;
  Operand a, b, c, d;
  double alpha, beta;
  void* result;
  void* workspace;
  std::size_t workspace_bytes;

  void operator()() const {
    if (workspace_bytes != 0) std::memset(workspace, 0xff, workspace_bytes);
    const std::int64_t depth = desc.transpose_a ? a.layout.rows : a.layout.columns;
    for (std::int64_t z = 0; z < d.layout.batch; ++z) {
      for (std::int64_t j = 0; j < d.layout.columns; ++j) {
        for (std::int64_t i = 0; i < d.layout.rows; ++i) {
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            sum += (desc.transpose_a ? a(z, k, i) : a(z, i, k)) *
                   (desc.transpose_b ? b(z, j, k) : b(z, k, j));
          }
          double value = alpha * sum;
          if (beta != 0) value += beta * c(z, i, j);
          if (desc.epilogue & CUBLASLT_EPILOGUE_BIAS) value += element(desc.bias, d.layout.type, i);
          put(result, d.layout.type, z * d.layout.step + j * d.layout.leading + i,
              activated(desc.epilogue, value));
        }
      }
    }
  }
};

// Whether shapes and types go together, as far as Tandem uses them.
bool fits(const cublasLtMatmulDescOpaque& desc, const cublasLtMatrixLayoutOpaque& a,
          const cublasLtMatrixLayoutOpaque& b, const cublasLtMatrixLayoutOpaque& d) {
  const std::int64_t m = desc.transpose_a ? a.columns : a.rows;
  const std::int64_t k = desc.transpose_a ? a.rows : a.columns;
  const std::int64_t n = desc.transpose_b ? b.rows : b.columns;
  const std::int64_t k2 = desc.transpose_b ? b.columns : b.rows;
  const bool wide = desc.compute == CUBLAS_COMPUTE_64F;
  return m == d.rows && n == d.columns && k == k2 && k > 0 && a.batch == d.batch &&
         b.batch == d.batch && a.type == b.type && (d.type == a.type || d.type == CUDA_R_32F) &&
         wide == (a.type == CUDA_R_64F) && desc.scale == (wide ? CUDA_R_64F : CUDA_R_32F);
}

cublasStatus_t entered(const char* name) {
  const int failed = driver().library_call(name);
  if (failed == 0) return CUBLAS_STATUS_SUCCESS;
  constexpr int kOutOfMemory = 2;
  return failed == kOutOfMemory ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
}
#define ENTER()                                                                         \
  if (const cublasStatus_t failed = entered(__func__); failed != CUBLAS_STATUS_SUCCESS) \
  return failed

}  // namespace

extern "C" {

#define STAND_IN __attribute__((visibility("default"))) cublasStatus_t

STAND_IN cublasLtCreate(cublasLtHandle_t* handle) {
  ENTER();
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
__attribute__((visibility("default"))) std::size_t cublasLtGetVersion(void) {
  return 130100;  // 13.1.0
}
STAND_IN cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                  cudaDataType_t scale) {
  *made = new cublasLtMatmulDescOpaque{.compute = compute, .scale = scale};
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                        cublasLtMatmulDescAttributes_t attribute, const void* value,
                                        std::size_t bytes) {
  const auto set = [&](auto& to) {
    if (bytes != sizeof(to)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(desc->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(desc->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(desc->bias);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
STAND_IN cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type,
                                    std::uint64_t rows, std::uint64_t columns,
                                    std::int64_t leading) {
  if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *made = new cublasLtMatrixLayoutOpaque{.type = type,
                                         .rows = static_cast<std::int64_t>(rows),
                                         .columns = static_cast<std::int64_t>(columns),
                                         .leading = leading};
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                          cublasLtMatrixLayoutAttribute_t attribute,
                                          const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(layout->batch)) {
    std::memcpy(&layout->batch, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof(layout->step)) {
    std::memcpy(&layout->step, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
STAND_IN cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = new cublasLtMatmulPreferenceOpaque;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                              cublasLtMatmulPreferenceAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != sizeof(preference->workspace)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&preference->workspace, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (bytes != sizeof(std::uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::uint32_t number = 0;
  std::memcpy(&number, value, bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    preference->reductions = number;
  } else {
    preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = number;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Algorithms with a workspace stand for those that split sums.
STAND_IN cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                        cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                        cublasLtMatmulPreference_t preference, int requested,
                                        cublasLtMatmulHeuristicResult_t* results, int* found) {
  ENTER();
  ++counts.heuristics;
  if (!fits(*desc, *a, *b, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 0;
  for (std::size_t i = 0; i < std::size(kWorkspaces) && *found < requested; ++i) {
    if (kWorkspaces[i] > preference->workspace) continue;
    if (kWorkspaces[i] != 0 && preference->reductions == 0) continue;
    cublasLtMatmulHeuristicResult_t& one = results[(*found)++];
    one = {};
    one.algo.data[0] = kMark;
    one.algo.data[1] = i;
    one.algo.data[2] = *std::min_element(preference->alignment, preference->alignment + 4);
    one.workspaceSize = kWorkspaces[i];
    one.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                 cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                 cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                 const cublasLtMatmulAlgo_t* algorithm,
                                 cublasLtMatmulHeuristicResult_t* result) {
  ENTER();
  ++counts.checks;
  if (algorithm->data[0] != kMark || algorithm->data[1] >= std::size(kWorkspaces))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!fits(*desc, *a, *b, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = kWorkspaces[algorithm->data[1]];
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                        std::size_t workspace_bytes, CUstream_st* stream) {
  ENTER();
  const auto scalar = [&](const void* at) { return element(at, desc->scale, 0); };
  const Job job{.desc = *desc,
                .a = {*a_layout, a},
                .b = {*b_layout, b},
                .c = {*c_layout, c},
                .d = {*d_layout, d},
                .alpha = scalar(alpha),
                .beta = scalar(beta),
                .result = d,
                .workspace = workspace,
                .workspace_bytes = workspace_bytes};
  if (algorithm->data[0] != kMark || workspace_bytes < kWorkspaces[algorithm->data[1]] ||
      !fits(*desc, *a_layout, *b_layout, *d_layout) || !is_there(job.a) || !is_there(job.b) ||
      !is_there(job.c) || !is_there(job.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const void* address : {a, b, c, static_cast<const void*>(d)}) {
    if (reinterpret_cast<std::uintptr_t>(address) % algorithm->data[2] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (workspace_bytes != 0 && driver().is_device_memory(workspace, workspace_bytes) == 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  ++counts.products;
  if (desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32) ++counts.tf32;
  driver().add_kernel(stream, job);
  return CUBLAS_STATUS_SUCCESS;
}

__attribute__((visibility("default"))) const CublasLtStandInControl* cublaslt_stand_in_control() {
  static const CublasLtStandInControl control = {
      .used =
          [] {
            return CublasLtStandInUse{.heuristics = counts.heuristics,
                                      .checks = counts.checks,
                                      .products = counts.products,
                                      .products_in_tf32 = counts.tf32};
          },
  };
  return &control;
}
}
