#include "tandem/kernels/cuda/cublaslt/product_plan.h"

#include <algorithm>

namespace tandem::cuda {
namespace {

// What NVIDIA recommends for GPUs since Hopper.
constexpr std::uint64_t kMaxWorkspace = std::uint64_t{32} << 20;
constexpr int kMaxAlgorithms = 8;

cudaDataType_t data_type(Type type) {
  switch (type) {
    case Type::kDouble: return CUDA_R_64F;
    case Type::kHalf: return CUDA_R_16F;
    case Type::kBFloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

const char* name_of(Type type) {
  switch (type) {
    case Type::kDouble: return "double";
    case Type::kHalf: return "half";
    case Type::kBFloat16: return "bfloat16";
    default: return "float";
  }
}

std::uint32_t epilogue_of(const ProductProblem& p) {
  const std::uint32_t bias = p.has_bias ? CUBLASLT_EPILOGUE_BIAS : 0u;
  switch (p.activation) {
    case Activation::kRelu: return CUBLASLT_EPILOGUE_RELU | bias;
    case Activation::kGeluTanh: return CUBLASLT_EPILOGUE_GELU | bias;
    default: return p.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

}  // namespace

std::string ProductProblem::text() const {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  std::string text = std::string("product ") + name_of(type);
  if (result_type != type) text += std::string(" to ") + name_of(result_type);
  if (tensor_float_32) text += " tf32";
  text += std::string(" ") + (transpose_a ? 't' : 'n') + (transpose_b ? 't' : 'n');
  text += ' ' + number(rows) + 'x' + number(columns) + 'x' + number(depth);
  if (batch != 1)
    text += " batch " + number(batch) + " steps " + number(a_step) + ',' + number(b_step);
  if (has_bias) text += " bias";
  if (has_addend) text += " addend";
  if (activation != Activation::kNone)
    text += " activation " + number(static_cast<int>(activation));
  text += " alignment " + number(alignment);
  return deterministic ? text + " deterministic" : text;
}

ProductDescription::ProductDescription(cublasLtHandle_t handle, const ProductProblem& problem,
                                       const void* bias)
    : handle_(handle), problem_(problem) {
  try {
    create();
    if (problem_.has_bias) {
      check(cublaslt().p_cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                        &bias, sizeof(bias)),
            "cublasLtMatmulDescSetAttribute");
    }
  } catch (...) {
    destroy();
    throw;
  }
}

ProductDescription::~ProductDescription() { destroy(); }

void ProductDescription::create() {
  const CublasLt& lt = cublaslt();
  const ProductProblem& p = problem_;
  const bool wide = p.type == Type::kDouble;
  const cublasComputeType_t compute = wide                ? CUBLAS_COMPUTE_64F
                                      : p.tensor_float_32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                          : CUBLAS_COMPUTE_32F;
  check(lt.p_cublasLtMatmulDescCreate(&desc_, compute, wide ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(lt.p_cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  make_layout(a_, p.type, p.transpose_b ? p.depth : p.columns, p.transpose_b ? p.columns : p.depth,
              p.b_step);
  make_layout(b_, p.type, p.transpose_a ? p.rows : p.depth, p.transpose_a ? p.depth : p.rows,
              p.a_step);
  make_layout(d_, p.result_type, p.columns, p.rows, p.rows * p.columns);
}

void ProductDescription::destroy() {
  const CublasLt& lt = cublaslt();
  for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) {
    if (layout) lt.p_cublasLtMatrixLayoutDestroy(layout);
  }
  if (desc_) lt.p_cublasLtMatmulDescDestroy(desc_);
}

void ProductDescription::make_layout(cublasLtMatrixLayout_t& layout, Type type, std::int64_t rows,
                                     std::int64_t columns, std::int64_t step) const {
  const CublasLt& lt = cublaslt();
  check(lt.p_cublasLtMatrixLayoutCreate(&layout, data_type(type), static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  if (problem_.batch == 1) return;
  const auto count = static_cast<std::int32_t>(problem_.batch);
  check(lt.p_cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                              sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute");
  check(lt.p_cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &step, sizeof(step)),
        "cublasLtMatrixLayoutSetAttribute");
}

std::vector<cublasLtMatmulHeuristicResult_t> ProductDescription::algorithms() const {
  const CublasLt& lt = cublaslt();
  cublasLtMatmulPreference_t made = nullptr;
  check(lt.p_cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        decltype(lt.p_cublasLtMatmulPreferenceDestroy)>
      preference(made, lt.p_cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(lt.p_cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
  if (problem_.deterministic) set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{0});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(attribute, problem_.alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kMaxAlgorithms);
  int count = 0;
  const cublasStatus_t status = lt.p_cublasLtMatmulAlgoGetHeuristic(
      handle_, desc_, a_, b_, d_, d_, made, kMaxAlgorithms, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  found.resize(static_cast<std::size_t>(std::clamp(count, 0, kMaxAlgorithms)));
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

bool ProductDescription::check_algorithm(cublasLtMatmulHeuristicResult_t& kept) const {
  const cublasLtMatmulAlgo_t algorithm = kept.algo;
  const bool usable =
      cublaslt().p_cublasLtMatmulAlgoCheck(handle_, desc_, a_, b_, d_, d_, &algorithm, &kept) ==
      CUBLAS_STATUS_SUCCESS;
  kept.algo = algorithm;
  return usable && kept.workspaceSize <= kMaxWorkspace;
}

void ProductDescription::multiply(const cublasLtMatmulHeuristicResult_t& algorithm,
                                  const ProductAddresses& at, CUstream stream) const {
  const CublasLt& lt = cublaslt();
  // Factors have the type of the sums.
  const bool wide = problem_.type == Type::kDouble;
  const double one = 1, zero = 0;
  const float narrow_one = 1, narrow_zero = 0;
  const void* const alpha = wide ? static_cast<const void*>(&one) : &narrow_one;
  const void* const none = wide ? static_cast<const void*>(&zero) : &narrow_zero;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (problem_.has_bias) {
    lock.lock();
    check(lt.p_cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at.bias,
                                              sizeof(at.bias)),
          "cublasLtMatmulDescSetAttribute");
  }
  check(lt.p_cublasLtMatmul(handle_, desc_, alpha, at.b, a_, at.a, b_,
                            problem_.has_addend ? alpha : none, at.c, d_, at.d, d_, &algorithm.algo,
                            at.workspace, algorithm.workspaceSize, stream),
        "cublasLtMatmul");
}

void ProductPlan::issue(CUstream stream, void* const* values) const {
  description_->multiply(algorithm_, *static_cast<const ProductAddresses*>(values[0]), stream);
}

}  // namespace tandem::cuda
