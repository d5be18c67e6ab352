// _FusedMatMul: a product of matrices and what follows it.

#include "tandem/kernels/cpu/onednn/fused_matmul.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/onednn/fused_conv.h"

namespace tandem::cpu {
namespace {

// One row that is added to all, or a product of one row to which several are added.
void with_other_rows(KernelContext& c, const onednn::FusedMatMul& w) {
  const Shape& addend = w.epilogue.addend->shape();
  if (addend.rank() != 2 || addend[1] != w.n || (addend[0] != 1 && w.m != 1)) {
    throw InvalidArgumentError(
        cat("Incompatible shapes: ", Shape{w.m, w.n}, " vs. ", addend, " (what is added)."));
  }
  Array sums = c.allocate_temp(DType::kFloat, Shape{w.m, w.n});
  onednn::FusedMatMul plain = w;
  plain.epilogue = {};
  if (w.k == 0) {
    std::fill_n(sums.data<float>(), sums.num_elements(), 0.0f);
  } else if (sums.num_elements() != 0) {
    onednn::fused_matmul(c, plain, c.input(0).data<float>(), c.input(1), sums.data<float>());
  }
  Array& out = c.allocate_output(0, Shape{w.m == 1 ? addend[0] : w.m, w.n});
  if (out.num_elements() != 0) apply_epilogue(c, w.epilogue, sums, w.n, out);
}

void fused_matmul(KernelContext& c) {
  const Array &a = c.input(0), &b = onednn::plain_weights(c.input(1));
  if (a.rank() != 2 || b.rank() != 2) {
    throw InvalidArgumentError(
        cat("a and b must be matrices, but have shapes ", a.shape(), " and ", b.shape()));
  }
  onednn::FusedMatMul w;
  w.transpose_a = c.attr<bool>("transpose_a");
  w.transpose_b = c.attr<bool>("transpose_b");
  w.m = a.shape()[w.transpose_a ? 1 : 0];
  w.k = a.shape()[w.transpose_a ? 0 : 1];
  w.n = b.shape()[w.transpose_b ? 0 : 1];
  if (b.shape()[w.transpose_b ? 1 : 0] != w.k) {
    throw InvalidArgumentError(
        cat("Matrix size-incompatible: In[0]: ", a.shape(), ", In[1]: ", b.shape()));
  }
  Epilogue& e = w.epilogue;
  e = read_epilogue(c, 2);
  check_bias(e, w.n);
  const Shape shape{w.m, w.n};
  if (e.addend && !(e.addend->shape() == shape)) return with_other_rows(c, w);
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  if (w.k == 0) {
    Array zeros = c.allocate_temp(DType::kFloat, Shape{w.n});
    std::fill_n(zeros.data<float>(), w.n, 0.0f);
    apply_epilogue(c, e, zeros, w.n, out);
    return;
  }
  if (e.addend) std::memcpy(out.raw_data(), e.addend->raw_data(), out.num_bytes());
  onednn::fused_matmul(c, w, a.data<float>(), c.input(1), out.data<float>());
}

const KernelRegistration kFusedMatMul{{.op = "_FusedMatMul",
                                       .name = "oneDNN",
                                       .types = {{"T", {DType::kFloat}}},
                                       .run = fused_matmul}};

}  // namespace
}  // namespace tandem::cpu
