#include "tandem/kernels/cpu/onednn/matmul.h"

#include "tandem/kernels/cpu/onednn/call.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kKind = 1;

// Library versions compute addresses inside a matrix in 32 bits of bytes.
constexpr std::int64_t kLargest = std::int64_t{1} << 28;

memory::desc operand(const MatMul& w, std::int64_t rows, std::int64_t columns, bool transpose,
                     std::int64_t stride, std::int64_t step) {
  const memory::dim row = transpose ? 1 : stride, column = transpose ? stride : 1;
  if (w.batch == 1) return {{rows, columns}, data_type(w.dtype), memory::dims{row, column}};
  // A matrix that serves all others has batch size 1, which the library broadcasts.
  const memory::dim batch = step == 0 ? 1 : w.batch;
  const memory::dim batch_stride = step == 0 ? (transpose ? columns : rows) * stride : step;
  return {{batch, rows, columns}, data_type(w.dtype), memory::dims{batch_stride, row, column}};
}

Plan make(const void* what) {
  const MatMul& w = *static_cast<const MatMul*>(what);
  const memory::desc a = operand(w, w.m, w.k, w.transpose_a, w.a_stride, w.a_step);
  const memory::desc b = operand(w, w.k, w.n, w.transpose_b, w.b_stride, w.b_step);
  const memory::desc c = operand(w, w.m, w.n, false, w.c_stride, w.c_step);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc desc(engine(), a, b, c, user_scratch());
#else
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, c), user_scratch(), engine());
#endif
  return Plan(desc, dnnl::matmul(desc),
              {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
}

// The library's gemm packs parts of both operands before it multiplies, its matmul
// primitive reads them where they lie. Which is faster depends on how they lie; measured with
// version 2.6, whose gemm also knows products with a vector. Later ones choose by themselves.
bool gemm_is_faster([[maybe_unused]] const MatMul& w) {
#if DNNL_VERSION_MAJOR >= 3
  return false;
#else
  if (w.dtype != DType::kFloat || w.batch != 1) return false;
  const double multiplications =
      static_cast<double>(w.m) * static_cast<double>(w.n) * static_cast<double>(w.k);
  if (w.m == 1 || w.n == 1) return multiplications >= 1 << 16;
  if (multiplications < 1 << 19 || w.n < 64) return false;
  return w.transpose_a ? w.m >= 64 : !w.transpose_b || (w.m >= 512 && w.n >= 256);
#endif
}

void gemm(const MatMul& w, const void* a, const void* b, void* c) {
  const OneThread one_thread;
  const dnnl_status_t status =
      dnnl_sgemm(w.transpose_a ? 'T' : 'N', w.transpose_b ? 'T' : 'N', w.m, w.n, w.k, 1.0f,
                 static_cast<const float*>(a), w.a_stride, static_cast<const float*>(b), w.b_stride,
                 0.0f, static_cast<float*>(c), w.c_stride);
  if (status != dnnl_success) throw_status(status, "multiplying matrices");
}

}  // namespace

bool matmul(const MatMul& w, const void* a, const void* b, void* c) {
  const auto fits = [](std::int64_t rows, std::int64_t stride) {
    return stride <= kLargest / rows;
  };
  if (!fits(w.transpose_a ? w.k : w.m, w.a_stride) ||
      !fits(w.transpose_b ? w.n : w.k, w.b_stride) || !fits(w.m, w.c_stride)) {
    return false;
  }
  if (gemm_is_faster(w)) {
    gemm(w, a, b, c);
    return true;
  }
  const std::int64_t flags = (w.transpose_a ? 1 : 0) | (w.transpose_b ? 2 : 0);
  const Key key{kKind,      static_cast<std::int64_t>(w.dtype),
                flags,      w.batch,
                w.m,        w.n,
                w.k,        w.a_stride,
                w.b_stride, w.c_stride,
                w.a_step,   w.b_step,
                w.c_step};
  Call& call = find_call(key, make, &w);
  if (!call.possible()) return false;
  call.run({a, b, c});
  return true;
}

}  // namespace tandem::cpu::onednn
