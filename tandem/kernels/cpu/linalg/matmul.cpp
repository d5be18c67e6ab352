#include <complex>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"

namespace tandem::cpu {
namespace {

using Multiply = void (*)(KernelContext&, const MatrixProduct&);

[[noreturn]] void sizes_differ(const Array& a, const Array& b) {
  throw InvalidArgumentError(cat("Matrix size-incompatible: In[0]: ", a.shape(),
                                 ", In[1]: ", b.shape(),
                                 ". The inner sizes of the (turned) matrices must be equal."));
}

template <Multiply multiply>
void matmul(KernelContext& c) {
  const Array &a = c.input(0), &b = c.input(1);
  if (a.rank() != 2 || b.rank() != 2) {
    throw InvalidArgumentError(
        cat("In[0] and In[1] must be matrices, that is have rank 2, but their shapes are ",
            a.shape(), " and ", b.shape(),
            ". td::linalg::matvec multiplies a vector, td::expand_dims makes a matrix of it; "
            "td::matmul "
            "multiplies batches of matrices too."));
  }
  MatrixProduct p;
  p.dtype = a.dtype();
  p.transpose_a = c.attr<bool>("transpose_a");
  p.transpose_b = c.attr<bool>("transpose_b");
  p.m = a.shape()[p.transpose_a ? 1 : 0];
  p.k = a.shape()[p.transpose_a ? 0 : 1];
  p.n = b.shape()[p.transpose_b ? 0 : 1];
  if (b.shape()[p.transpose_b ? 1 : 0] != p.k) sizes_differ(a, b);
  p.a = a.raw_data();
  p.b = b.raw_data();
  p.c = c.allocate_output(0, Shape{p.m, p.n}).raw_data();
  multiply(c, p);
}

Shape batch_shape(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
}

template <class From, class To>
void convert(const Array& from, Array& to) {
  const From* in = from.data<From>();
  To* out = to.data<To>();
  for (std::int64_t i = 0; i < from.num_elements(); ++i) {
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
      out[i] = static_cast<To>(static_cast<float>(in[i]));
    } else {
      out[i] = static_cast<To>(in[i]);
    }
  }
}

// For BatchMatMulV3: an operand as the wider type in which its products are summed.
template <class From>
Array widen_from(KernelContext& c, const Array& x, DType to) {
  Array wide = c.allocate_temp(to, x.shape());
  switch (to) {
    case DType::kInt16: convert<From, std::int16_t>(x, wide); break;
    case DType::kInt32: convert<From, std::int32_t>(x, wide); break;
    case DType::kInt64: convert<From, std::int64_t>(x, wide); break;
    case DType::kFloat: convert<From, float>(x, wide); break;
    case DType::kDouble: convert<From, double>(x, wide); break;
    default: throw UnimplementedError(cat("Tout=", to, " with operands of dtype ", x.dtype(), "."));
  }
  return wide;
}

Array widen(KernelContext& c, const Array& x, DType to) {
  if (x.dtype() == to) return x;
  switch (x.dtype()) {
    case DType::kInt8: return widen_from<std::int8_t>(c, x, to);
    case DType::kUint8: return widen_from<std::uint8_t>(c, x, to);
    case DType::kInt16: return widen_from<std::int16_t>(c, x, to);
    case DType::kInt32: return widen_from<std::int32_t>(c, x, to);
    case DType::kHalf: return widen_from<Half>(c, x, to);
    case DType::kBFloat16: return widen_from<BFloat16>(c, x, to);
    case DType::kFloat: return widen_from<float>(c, x, to);
    default: throw UnimplementedError(cat("Tout=", to, " with operands of dtype ", x.dtype(), "."));
  }
}

template <Multiply multiply>
void batch_matmul(KernelContext& c) {
  if (c.input(0).rank() < 2 || c.input(1).rank() < 2) {
    throw InvalidArgumentError(
        cat("In[0] and In[1] must have rank at least 2, but their shapes are ", c.input(0).shape(),
            " and ", c.input(1).shape(), "."));
  }
  const DType result = c.output_dtype(0);
  const Array a = widen(c, c.input(0), result), b = widen(c, c.input(1), result);
  MatrixProduct p;
  p.dtype = result;
  p.transpose_a = p.conjugate_a = c.attr<bool>("adj_x");
  p.transpose_b = p.conjugate_b = c.attr<bool>("adj_y");
  p.m = a.dim(p.transpose_a ? -1 : -2);
  p.k = a.dim(p.transpose_a ? -2 : -1);
  p.n = b.dim(p.transpose_b ? -2 : -1);
  if (b.dim(p.transpose_b ? -1 : -2) != p.k) sizes_differ(a, b);

  const Shape batch_a = batch_shape(a.shape()), batch_b = batch_shape(b.shape());
  Shape batch = batch_a;
  std::vector<std::int64_t> a_index, b_index;
  if (!(batch_a == batch_b)) {
    if (c.op().name == "BatchMatMul") {
      throw InvalidArgumentError(
          cat("In[0] and In[1] must have the same batch dimensions: ", a.shape(), " vs. ",
              b.shape(), ". BatchMatMulV2 broadcasts them."));
    }
    try {
      batch = broadcast(batch_a, batch_b);
    } catch (const InvalidArgumentError&) {
      throw InvalidArgumentError(cat("In[0] and In[1] must have compatible batch dimensions: ",
                                     a.shape(), " vs. ", b.shape(), "."));
    }
    p.a_once = batch_a.num_elements() == 1;
    p.b_once = batch_b.num_elements() == 1;
  }
  p.batch = batch.num_elements();
  p.a = a.raw_data();
  p.b = b.raw_data();
  Shape shape = batch;
  shape.add_dim(p.m);
  shape.add_dim(p.n);
  p.c = c.allocate_output(0, shape).raw_data();
  if (shape.num_elements() == 0) return;
  if (!p.a_once && !(batch_a == batch)) a_index = matrix_numbers(batch_a, batch);
  if (!p.b_once && !(batch_b == batch)) b_index = matrix_numbers(batch_b, batch);
  p.a_index = a_index;
  p.b_index = b_index;
  multiply(c, p);
}

constexpr DTypeSet kLibraryTypes{DType::kFloat, DType::kBFloat16, DType::kHalf};
constexpr DTypeSet kVectorTypes{DType::kInt32, DType::kUint32, DType::kInt64, DType::kUint64};
constexpr DTypeSet kBlasTypes{DType::kDouble, DType::kComplex64, DType::kComplex128};

// The kernels of one op: plain loops for every type, and the libraries for what they multiply.
#define TANDEM_PRODUCT(OP, TYPE, RUN)                                                            \
  KernelRegistration({.op = OP,                                                                  \
                      .name = "vectors",                                                         \
                      .types = {{TYPE, kVectorTypes}},                                           \
                      .priority = 10,                                                            \
                      .run = RUN<multiply_matrices>}),                                           \
      KernelRegistration(                                                                        \
          {.op = OP, .types = {{TYPE, kNumberTypes}}, .run = RUN<multiply_matrices_reference>}), \
      KernelRegistration({.op = OP,                                                              \
                          .name = "oneDNN",                                                      \
                          .types = {{TYPE, kLibraryTypes}},                                      \
                          .priority = 10,                                                        \
                          .run = RUN<multiply_matrices>}),                                       \
      KernelRegistration({.op = OP,                                                              \
                          .name = "BLAS",                                                        \
                          .types = {{TYPE, kBlasTypes}},                                         \
                          .priority = 10,                                                        \
                          .run = RUN<multiply_matrices>})

const KernelRegistration kKernels[] = {
    TANDEM_PRODUCT("MatMul", "T", matmul),
    TANDEM_PRODUCT("BatchMatMul", "T", batch_matmul),
    TANDEM_PRODUCT("BatchMatMulV2", "T", batch_matmul),
    TANDEM_PRODUCT("BatchMatMulV3", "Tout", batch_matmul),
};
#undef TANDEM_PRODUCT

}  // namespace
}  // namespace tandem::cpu
