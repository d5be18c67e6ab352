#include "tandem/ops/matmul_ops.h"

#include <numeric>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_attention.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void matmul_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const PartialShape &a = c.input(0), &b = c.input(1);
  c.merge_dim(a.dim(ta ? 0 : 1), b.dim(tb ? 1 : 0), "the inner sizes of the matrices");
  c.set_output(0, PartialShape{a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)});
}

PartialShape batch_of(const PartialShape& matrices) {
  if (!matrices.has_rank()) return PartialShape::unknown();
  return PartialShape(
      std::vector<std::int64_t>(matrices.dims().begin(), matrices.dims().end() - 2));
}

void batch_matmul_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  c.require_rank_at_least(1, 2);
  const bool ax = c.attr<bool>("adj_x"), ay = c.attr<bool>("adj_y");
  const PartialShape &x = c.input(0), &y = c.input(1);
  c.merge_dim(x.dim(ax ? -2 : -1), y.dim(ay ? -1 : -2), "the inner sizes of the matrices");
  PartialShape out = c.op().name == "BatchMatMul" ? batch_of(x).merge(batch_of(y))
                                                  : broadcast(batch_of(x), batch_of(y));
  if (!out.has_rank()) return c.set_output(0, PartialShape::unknown());
  std::vector<std::int64_t> dims = out.dims();
  dims.push_back(x.dim(ax ? -1 : -2));
  dims.push_back(y.dim(ay ? -2 : -1));
  c.set_output(0, PartialShape(std::move(dims)));
}

void matmul_grad(GradientContext& g);
void batch_matmul_grad(GradientContext& g);
void batch_matmul_v2_grad(GradientContext& g);

bool fuse_product_or_attention(RewriteContext& r) {
  return internal::fuse_attention(r) || internal::fuse_matmul(r);
}

const OpRegistration kMatMul{{
    .name = "MatMul",
    .inputs = "a: T, b: T",
    .outputs = "product: T",
    .attrs =
        "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float, double, "
        "int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; grad_a: bool = "
        "false; grad_b: bool = false",
    .shape = matmul_shape,
    .gradient = matmul_grad,
    .fuse = fuse_product_or_attention,
    .flops = flops::matmul,
    .doc = "Product of two matrices, each turned first if asked for.",
}};

const OpRegistration kBatchMatMul{{
    .name = "BatchMatMul",
    .inputs = "x: T, y: T",
    .outputs = "output: T",
    .attrs =
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = "
        "false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
    .shape = batch_matmul_shape,
    .gradient = batch_matmul_grad,
    .fuse = internal::fuse_attention,
    .flops = flops::batch_matmul,
    .doc = "Products of the matrices in the last two axes; the axes before them must be equal.",
}};

const OpRegistration kBatchMatMulV2{{
    .name = "BatchMatMulV2",
    .inputs = "x: T, y: T",
    .outputs = "output: T",
    .attrs =
        "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, "
        "complex64, complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = "
        "false; grad_y: bool = false",
    .shape = batch_matmul_shape,
    .gradient = batch_matmul_v2_grad,
    .fuse = internal::fuse_attention,
    .flops = flops::batch_matmul,
    .doc = "Products of the matrices in the last two axes; the axes before them broadcast.",
}};

const OpRegistration kBatchMatMulV3{{
    .name = "BatchMatMulV3",
    .inputs = "x: Ta, y: Tb",
    .outputs = "output: Tout",
    .attrs = "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
             "complex128}; Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, "
             "complex64, complex128}; Tout: {bfloat16, half, float, double, int16, int32, int64, "
             "complex64, complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = "
             "false; grad_y: bool = false",
    .shape = batch_matmul_shape,
    .gradient = batch_matmul_v2_grad,
    .flops = flops::batch_matmul,
    .doc = "BatchMatMulV2 with a dtype of its own for the result, in which products are summed.",
}};

// The four ways to turn the operands, made once: attributes cost more than small products do.
struct Turns {
  AttrMap maps[4];
  Turns(const char* first, const char* second) {
    for (int i = 0; i < 4; ++i) {
      if (i & 1) maps[i].set(first, true);
      if (i & 2) maps[i].set(second, true);
    }
  }
  const AttrMap& of(bool a, bool b) const { return maps[(a ? 1 : 0) | (b ? 2 : 0)]; }
};
const Turns& transposes() {
  static const NeverDestroyed<Turns> turns([] { return Turns("transpose_a", "transpose_b"); });
  return *turns;
}
const Turns& adjoints() {
  static const NeverDestroyed<Turns> turns([] { return Turns("adj_x", "adj_y"); });
  return *turns;
}

Tensor conj_if_complex(Tensor x) { return is_complex(x.dtype()) ? math::conj(std::move(x)) : x; }

struct Product {
  const OpRegistration& op;
  const Turns& turns;
  Tensor operator()(const Tensor& x, const Tensor& y, bool turn_x, bool turn_y) const {
    return call1(op, {x, y}, turns.of(turn_x, turn_y));
  }
};

// The gradients of turn(x, tx) * turn(y, ty) by `product`, which turns (and for adjoints
// conjugates).
void product_grad(GradientContext& g, const Product& product, const Tensor& x, const Tensor& y,
                  bool tx, bool ty, Tensor out[2]) {
  const Tensor grad = g.grad();
  if (g.needs(0)) out[0] = tx ? product(y, grad, ty, true) : product(grad, y, false, !ty);
  if (g.needs(1)) out[1] = ty ? product(grad, x, true, tx) : product(x, grad, !tx, false);
}

void matmul_grad(GradientContext& g) {
  Tensor out[2];
  product_grad(g, Product{kMatMul, transposes()}, conj_if_complex(g.input(0)),
               conj_if_complex(g.input(1)), g.attr<bool>("transpose_a"),
               g.attr<bool>("transpose_b"), out);
  for (int i = 0; i < 2; ++i) {
    if (g.needs(i)) g.set(i, std::move(out[i]));
  }
}

void batch_matmul_grad(GradientContext& g) {
  Tensor out[2];
  product_grad(g, Product{kBatchMatMul, adjoints()}, g.input(0), g.input(1), g.attr<bool>("adj_x"),
               g.attr<bool>("adj_y"), out);
  for (int i = 0; i < 2; ++i) {
    if (g.needs(i)) g.set(i, std::move(out[i]));
  }
}

void batch_matmul_v2_grad(GradientContext& g) {
  Tensor out[2];
  Tensor x = g.input(0), y = g.input(1);
  const DType result = g.output().dtype();
  if (x.dtype() != result) x = cast(x, result);
  if (y.dtype() != result) y = cast(y, result);
  product_grad(g, Product{kBatchMatMulV2, adjoints()}, x, y, g.attr<bool>("adj_x"),
               g.attr<bool>("adj_y"), out);
  for (int i = 0; i < 2; ++i) {
    if (!g.needs(i)) continue;
    Tensor summed = sum_to_shape_of(std::move(out[i]), g.input(i));
    g.set(i, summed.dtype() == g.input(i).dtype() ? summed : cast(summed, g.input(i).dtype()));
  }
}

}  // namespace

Tensor matmul(Tensor a, Tensor b, const MatMulOptions& o) {
  if ((o.transpose_a && o.adjoint_a) || (o.transpose_b && o.adjoint_b)) {
    throw InvalidArgumentError(cat("Only one of transpose_",
                                   o.transpose_a && o.adjoint_a ? "a" : "b", " and adjoint_",
                                   o.transpose_a && o.adjoint_a ? "a" : "b", " can be true."));
  }
  const int ra = a.rank(), rb = b.rank();
  const bool batch = ra < 0 || rb < 0 || ra > 2 || rb > 2;
  // MatMul transposes, BatchMatMulV2 takes adjoints: for complex numbers each may need the other's
  // conjugate.
  if (batch ? o.transpose_a : o.adjoint_a) a = conj_if_complex(std::move(a));
  if (batch ? o.transpose_b : o.adjoint_b) b = conj_if_complex(std::move(b));
  const bool ta = o.transpose_a || o.adjoint_a, tb = o.transpose_b || o.adjoint_b;
  if (batch) return call1(kBatchMatMulV2, {std::move(a), std::move(b)}, adjoints().of(ta, tb));
  return call1(kMatMul, {std::move(a), std::move(b)}, transposes().of(ta, tb));
}

namespace linalg {

Tensor matvec(Tensor a, Tensor b, const MatMulOptions& options) {
  return squeeze(
      tandem::matmul(std::move(a), expand_dims(std::move(b), -1),
                     {.transpose_a = options.transpose_a, .adjoint_a = options.adjoint_a}),
      {-1});
}

}  // namespace linalg
}  // namespace tandem
