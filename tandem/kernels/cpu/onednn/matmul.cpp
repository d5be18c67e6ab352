#include "tandem/kernels/cpu/onednn/matmul.h"

#include <algorithm>

#include "tandem/core/program_end.h"
#include "tandem/kernels/cpu/onednn/call.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kKind = 1, kFamily = 2;

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

bool fits(const MatMul& w) {
  const auto small = [](std::int64_t rows, std::int64_t stride) {
    return stride <= kLargest / rows;
  };
  return small(w.transpose_a ? w.k : w.m, w.a_stride) &&
         small(w.transpose_b ? w.n : w.k, w.b_stride) && small(w.m, w.c_stride);
}

}  // namespace

// Measured with version 2.6, whose gemm also knows products with a vector. Later ones choose by
// themselves.
bool gemm_is_assumed_faster([[maybe_unused]] const MatMul& w) {
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

bool gemm(const MatMul& w, const void* a, const void* b, void* c) {
  if (w.dtype != DType::kFloat || !fits(w)) return false;
  const MakingScope making;
  if (!making.allowed()) return false;
  const OneThread one_thread;
  for (std::int64_t i = 0; i < w.batch; ++i) {
    const dnnl_status_t status =
        dnnl_sgemm(w.transpose_a ? 'T' : 'N', w.transpose_b ? 'T' : 'N', w.m, w.n, w.k, 1.0f,
                   static_cast<const float*>(a) + i * w.a_step, w.a_stride,
                   static_cast<const float*>(b) + i * w.b_step, w.b_stride, 0.0f,
                   static_cast<float*>(c) + i * w.c_step, w.c_stride);
    if (status != dnnl_success) throw_status(status, "multiplying matrices");
  }
  return true;
}

namespace {

// Rows of a piece.
constexpr std::int64_t kMinRows = 8, kMaxRows = 256;

Key key_of(const MatMul& w, std::int64_t kind, std::int64_t rows) {
  const std::int64_t flags = (w.transpose_a ? 1 : 0) | (w.transpose_b ? 2 : 0);
  return {kind,       static_cast<std::int64_t>(w.dtype),
          flags,      w.batch,
          rows,       w.n,
          w.k,        w.a_stride,
          w.b_stride, w.c_stride,
          w.a_step,   w.b_step,
          w.c_step};
}

// Whether rows may be multiplied a few at a time, with the bits that all at once give: then
// primitives for a few numbers of rows do for all.
bool has_pieces(const MatMul& w) {
  return w.dtype == DType::kFloat && w.batch == 1 && !w.transpose_a && w.m > kMinRows;
}

// One matrix has no next one; the steps that are given follow from its rows.
MatMul without_steps(MatMul w) {
  w.a_step = w.b_step = w.c_step = 0;
  return w;
}

// Null: in pieces.
Call* find(const MatMul& w) {
  const Key key = key_of(w, kKind, w.m);
  if (!has_pieces(w)) return &find_call(key, make, &w);
  return find_call_of_family(key, key_of(without_steps(w), kFamily, 0), make, &w);
}

// A power of two of rows at a time. The last rows may be written once more, as they are.
bool in_pieces(const MatMul& w, const void* a, const void* b, void* c) {
  for (std::int64_t done = 0; done < w.m;) {
    MatMul piece = without_steps(w);
    piece.m = kMinRows;
    while (piece.m < w.m - done && piece.m < kMaxRows) piece.m *= 2;
    if (piece.m > w.m) piece.m /= 2;
    const std::int64_t row = std::min(done, w.m - piece.m);
    Call& call = find_call(key_of(piece, kKind, piece.m), make, &piece);
    if (!call.possible()) return false;
    call.run({static_cast<const float*>(a) + row * w.a_stride, b,
              static_cast<float*>(c) + row * w.c_stride});
    done = row + piece.m;
  }
  return true;
}

}  // namespace

bool matmul(const MatMul& w, const void* a, const void* b, void* c) {
  if (!fits(w)) return false;
  Call* const call = find(w);
  if (!call) return in_pieces(w, a, b, c);
  if (!call->possible()) return false;
  call->run({a, b, c});
  return true;
}

}  // namespace tandem::cpu::onednn
