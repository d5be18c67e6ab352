// Products of matrices: by cuBLASLt, and by our own tiles where it is not there or has no
// algorithm.

#include "tandem/kernels/cuda/linalg/product_epilogue.h"
#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

constexpr int kTile = 16;

// Matrices by strides, so that transposed ones need no copy.
struct Matrix {
  std::int64_t row, column;
};

// A block makes a tile of kTile x kTile results of one matrix; blockIdx.z goes round the batch.
template <class T>
TANDEM_KERNEL matmul_kernel(const T* a, const T* b, T* y, std::int64_t m, std::int64_t n,
                            std::int64_t k, Matrix a_by, Matrix b_by, std::int64_t batch,
                            Strides<2> batches, std::int64_t row_tiles, Epilogue epilogue) {
  TANDEM_SHARED(Sum<T>, a_tile, kTile * kTile);
  TANDEM_SHARED(Sum<T>, b_tile, kTile * kTile);
  const int r = static_cast<int>(threadIdx.y), c = static_cast<int>(threadIdx.x);
  for (std::int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
    std::int64_t at[2];
    batches.offsets(z, at);
    for (std::int64_t tile = blockIdx.y; tile < row_tiles; tile += gridDim.y) {
      const std::int64_t row = tile * kTile + r;
      const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTile + c;
      Sum<T> sum = Sum<T>(0);
      for (std::int64_t first = 0; first < k; first += kTile) {
        a_tile[r * kTile + c] =
            row < m && first + c < k
                ? static_cast<Sum<T>>(load(a[at[0] + row * a_by.row + (first + c) * a_by.column]))
                : Sum<T>(0);
        b_tile[r * kTile + c] = first + r < k && column < n
                                    ? static_cast<Sum<T>>(load(
                                          b[at[1] + (first + r) * b_by.row + column * b_by.column]))
                                    : Sum<T>(0);
        __syncthreads();
        for (int i = 0; i < kTile; ++i) {
          sum += static_cast<Sum<T>>(a_tile[r * kTile + i]) *
                 static_cast<Sum<T>>(b_tile[i * kTile + c]);
        }
        __syncthreads();
      }
      if (row < m && column < n)
        y[(z * m + row) * n + column] = store<T>(epilogue.apply<T>(sum, row, column));
    }
  }
}

// False if cuBLASLt does not serve: it takes matrices that lie at one distance from each other.
bool multiply_by_library(const KernelCall& call, const TensorView& a, const TensorView& b,
                         const TensorView& y, bool transpose_a, bool transpose_b, std::int64_t m,
                         std::int64_t n, std::int64_t k, std::int64_t batch,
                         const Strides<2>& batches, const Epilogue& epilogue) {
  if (batches.rank > 1 || k == 0) return false;
  Product p{.type = a.type,
            .result_type = y.type,
            .rows = m,
            .columns = n,
            .depth = k,
            .transpose_a = transpose_a,
            .transpose_b = transpose_b,
            .batch = batch,
            .a_step = batches.strides[0][0],
            .b_step = batches.strides[1][0],
            .a = a.data,
            .b = b.data,
            .y = y.data};
  // One b for all: the matrices of a are one with more rows.
  if (batch > 1 && !transpose_a && p.b_step == 0 && p.a_step == m * k) {
    p.rows *= batch;
    p.batch = 1;
  }
  const bool alone = !epilogue.bias && !epilogue.addend && epilogue.activation == Activation::kNone;
  return alone ? multiply_by_cublaslt(call, p) : multiply_with_epilogue(call, p, epilogue);
}

void matmul(const KernelCall& call, const TensorView& a, const TensorView& b, const TensorView& y,
            bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
            std::int64_t batch, const Strides<2>& batches, const Epilogue& epilogue = {},
            bool repeat_row = false) {
  if (y.count == 0) return;
  if (!repeat_row && multiply_by_library(call, a, b, y, transpose_a, transpose_b, m, n, k, batch,
                                         batches, epilogue))
    return;
  Matrix a_by = transpose_a ? Matrix{1, m} : Matrix{k, 1};
  if (repeat_row) a_by = {0, 1};
  const Matrix b_by = transpose_b ? Matrix{1, k} : Matrix{n, 1};
  const std::int64_t row_tiles = (m + kTile - 1) / kTile, column_tiles = (n + kTile - 1) / kTile;
  Shape shape;
  shape.grid.x = static_cast<unsigned>(column_tiles);
  shape.grid.y = static_cast<unsigned>(std::min<std::int64_t>(row_tiles, 65535));
  shape.grid.z = static_cast<unsigned>(std::min<std::int64_t>(batch, 65535));
  shape.block.x = kTile;
  shape.block.y = kTile;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(matmul_kernel<T>, shape, 0, a.as<T>(), b.as<T>(), y.as<T>(), m, n, k, a_by, b_by,
                  batch, batches, row_tiles, epilogue);
  });
}

}  // namespace

void linalg_batch_matmul(KernelCall& call);

void linalg_matmul(KernelCall& call) {
  const TensorView a = call.input(0), b = call.input(1);
  const bool ta = call.attr_bool("transpose_a"), tb = call.attr_bool("transpose_b");
  if (a.rank() != 2 || b.rank() != 2) refuse("In[0] and In[1] must be matrices");
  const std::int64_t m = a.sizes[ta ? 1 : 0], k = a.sizes[ta ? 0 : 1];
  const std::int64_t n = b.sizes[tb ? 0 : 1];
  if (b.sizes[tb ? 1 : 0] != k) refuse("Matrix size-incompatible");
  Strides<2> one;
  matmul(call, a, b, call.allocate_output(0, {m, n}), ta, tb, m, n, k, 1, one);
}

void linalg_fused_matmul(KernelCall& call) {
  const TensorView a = call.input(0), b = call.input(1);
  if (a.type != b.type) not_on_gpu("a product of two dtypes");
  const bool ta = call.attr_bool("transpose_a"), tb = call.attr_bool("transpose_b");
  if (a.rank() != 2 || b.rank() != 2) refuse("a and b must be matrices");
  const std::int64_t m = a.sizes[ta ? 1 : 0], k = a.sizes[ta ? 0 : 1];
  const std::int64_t n = b.sizes[tb ? 0 : 1];
  if (b.sizes[tb ? 1 : 0] != k) refuse("Matrix size-incompatible");
  std::int64_t rows = m;
  const Epilogue epilogue = read_epilogue(call, 2, rows, n);
  Strides<2> one;
  matmul(call, a, b, call.allocate_output(0, {rows, n}), ta, tb, rows, n, k, 1, one, epilogue,
         rows != m);
}

void linalg_batch_matmul_v3(KernelCall& call) {
  if (call.attr_type("Ta") != call.attr_type("Tout") ||
      call.attr_type("Tb") != call.attr_type("Tout"))
    not_on_gpu("a product of several dtypes");
  linalg_batch_matmul(call);
}

void linalg_batch_matmul(KernelCall& call) {
  const TensorView a = call.input(0), b = call.input(1);
  const bool ta = call.attr_bool("adj_x"), tb = call.attr_bool("adj_y");
  if (a.rank() < 2 || b.rank() < 2) refuse("In[0] and In[1] ndims must be >= 2");
  const std::size_t ra = a.sizes.size(), rb = b.sizes.size();
  const std::int64_t m = a.sizes[ra - (ta ? 1 : 2)], k = a.sizes[ra - (ta ? 2 : 1)];
  const std::int64_t n = b.sizes[rb - (tb ? 2 : 1)];
  if (b.sizes[rb - (tb ? 1 : 2)] != k) refuse("Matrix size-incompatible");
  const Sizes a_batch(a.sizes.begin(), a.sizes.end() - 2);
  const Sizes b_batch(b.sizes.begin(), b.sizes.end() - 2);
  if (call.op() == "BatchMatMul" && a_batch != b_batch) {
    refuse("In[0] and In[1] must have the same batch dimensions");
  }
  Sizes sizes = broadcast_sizes(a_batch, b_batch);
  Strides<2> batches = broadcast_strides<2>(sizes, {a_batch, b_batch});
  for (int axis = 0; axis < batches.rank; ++axis) {
    batches.strides[0][axis] *= m * k;
    batches.strides[1][axis] *= k * n;
  }
  const std::int64_t batch = product(sizes);
  sizes.insert(sizes.end(), {m, n});
  matmul(call, a, b, call.allocate_output(0, sizes), ta, tb, m, n, k, batch, batches);
}

}  // namespace tandem::cuda
