#include "tandem/ops/sparse_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;
using internal::vector_of;

// ---- Shapes ----

// The numbers of elements and axes of a sparse tensor given as indices, values and shape.
struct SparseShape {
  std::int64_t count = kUnknown;
  std::int64_t rank = kUnknown;
};
SparseShape sparse_input(const InferenceContext& c, int indices, int values, int dims) {
  c.require_rank(indices, 2);
  c.require_rank(values, 1);
  c.require_rank(dims, 1);
  SparseShape s;
  s.count = c.merge_dim(c.input(indices).dim(0), c.input(values).dim(0), "indices and values");
  s.rank = c.merge_dim(c.input(indices).dim(1), c.input(dims).dim(0), "index and shape lengths");
  return s;
}
SparseShape sparse_input(const InferenceContext& c, int first) {
  return sparse_input(c, first, first + 1, first + 2);
}

void set_sparse(InferenceContext& c, int first, std::int64_t count, std::int64_t rank) {
  c.set_output(first, PartialShape({count, rank}));
  c.set_output(first + 1, vector_of(count));
}

void to_dense_shape(InferenceContext& c) { c.set_output(0, internal::requested_shape(c, 1)); }

void matmul_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  c.require_rank(3, 2);
  c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "indices and values");
  c.merge_dim(c.input(0).dim(1), 2, "length of an index");
  const bool adjoint_a = c.attr<bool>("adjoint_a"), adjoint_b = c.attr<bool>("adjoint_b");
  const auto dims = c.input_ints(2);
  if (dims && dims->size() != 2) c.fail("a_shape must have 2 elements.");
  const std::int64_t rows = dims ? (*dims)[adjoint_a ? 1 : 0] : kUnknown;
  const std::int64_t inner = dims ? (*dims)[adjoint_a ? 0 : 1] : kUnknown;
  c.merge_dim(inner, c.input(3).dim(adjoint_b ? 1 : 0), "inner sizes of the product");
  c.set_output(0, PartialShape({rows, c.input(3).dim(adjoint_b ? 0 : 1)}));
}

void dense_add_shape(InferenceContext& c) { c.set_output(0, c.input(3)); }

void reshape_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  c.set_output(0, PartialShape({c.input(0).dim(0), c.input(2).dim(0)}));
  c.set_output(1, vector_of(c.input(2).dim(0)));
}

void reorder_shape(InferenceContext& c) {
  const SparseShape s = sparse_input(c, 0);
  set_sparse(c, 0, s.count, s.rank);
}

void slice_shape(InferenceContext& c) {
  const SparseShape s = sparse_input(c, 0);
  c.require_rank(3, 1);
  c.require_rank(4, 1);
  set_sparse(c, 0, kUnknown, s.rank);
  c.set_output(2, vector_of(s.rank));
}

void slice_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 2);
  c.set_output(0, vector_of(c.input(1).dim(0)));
}

void concat_shape(InferenceContext& c) {
  const int n = c.num_inputs() / 3;
  std::int64_t rank = kUnknown, count = 0;
  for (int i = 0; i < n; ++i) {
    const SparseShape s = sparse_input(c, i, n + i, 2 * n + i);
    rank = c.merge_dim(rank, s.rank, "ranks of the parts");
    count = internal::add_sizes(count, s.count);
  }
  set_sparse(c, 0, count, rank);
  c.set_output(2, vector_of(rank));
}

void add_shape(InferenceContext& c) {
  const SparseShape a = sparse_input(c, 0), b = sparse_input(c, 3);
  c.require_rank(6, 0);
  const std::int64_t rank = c.merge_dim(a.rank, b.rank, "ranks of both sides");
  set_sparse(c, 0, kUnknown, rank);
  c.set_output(2, vector_of(rank));
}

void add_grad_shape(InferenceContext& c) {
  c.require_rank(1, 2);
  c.require_rank(2, 2);
  c.set_output(0, vector_of(c.input(1).dim(0)));
  c.set_output(1, vector_of(c.input(2).dim(0)));
}

void reduce_shape(InferenceContext& c) {
  const SparseShape s = sparse_input(c, 0);
  const auto dims = c.input_ints(2);
  const auto axes = c.input_ints(3);
  if (!dims || !axes) return c.set_output(0, PartialShape::unknown());
  std::vector<bool> reduced(dims->size(), axes->empty());
  for (const std::int64_t axis : *axes) {
    reduced[static_cast<std::size_t>(internal::axis_in(c, axis, static_cast<int>(dims->size())))] =
        true;
  }
  std::vector<std::int64_t> out;
  for (std::size_t k = 0; k < dims->size(); ++k) {
    if (!reduced[k]) out.push_back((*dims)[k]);
    if (reduced[k] && c.attr<bool>("keep_dims")) out.push_back(1);
  }
  c.merge_dim(s.rank, static_cast<std::int64_t>(dims->size()), "index and shape lengths");
  c.set_output(0, PartialShape(std::move(out)));
}

void fill_shape(InferenceContext& c) {
  const SparseShape s = sparse_input(c, 0);
  c.require_rank(3, 0);
  set_sparse(c, 0, kUnknown, s.rank);
  const auto dims = c.input_ints(2);
  c.set_output(2, vector_of(dims && !dims->empty() ? dims->front() : kUnknown));
  c.set_output(3, vector_of(s.count));
}

void fill_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.set_output(0, c.input(0));
  c.set_output(1, PartialShape::scalar());
}

void cwise_shape(InferenceContext& c) { c.set_output(0, vector_of(sparse_input(c, 0).count)); }

// ---- Gradients ----

void to_dense_grad(GradientContext& g) {
  const Tensor picked =
      gather_nd(g.grad(), g.input(0).rank() == 2 ? g.input(0) : expand_dims(g.input(0), -1));
  if (g.needs(2)) g.set(2, g.input(2).rank() == 0 ? reduce_sum(picked) : picked);
  if (g.needs(3)) g.set(3, reduce_sum(g.grad()) - reduce_sum(picked));
}

void matmul_grad(GradientContext& g) {
  const bool adjoint_a = g.attr<bool>("adjoint_a"), adjoint_b = g.attr<bool>("adjoint_b");
  const Tensor &indices = g.input(0), &b = g.input(3);
  const auto turned = [](const Tensor& m) { return math::conj(transpose(m)); };
  if (g.needs(3)) {
    const Tensor db = op1("SparseTensorDenseMatMul", {indices, g.input(1), g.input(2), g.grad()},
                          {{"adjoint_a", !adjoint_a}, {"adjoint_b", false}});
    g.set(3, adjoint_b ? turned(db) : db);
  }
  if (g.needs(1)) {
    const Tensor rows = index(indices, {ellipsis, adjoint_a ? 1 : 0});
    const Tensor columns = index(indices, {ellipsis, adjoint_a ? 0 : 1});
    const Tensor left = gather(g.grad(), rows, 0);
    const Tensor right = gather(adjoint_b ? turned(b) : b, columns, 0);
    g.set(1, reduce_sum(adjoint_a ? math::conj(left) * right : left * math::conj(right), -1));
  }
}

void dense_add_grad(GradientContext& g) {
  if (g.needs(1)) g.set(1, gather_nd(g.grad(), g.input(0)));
  if (g.needs(3)) g.set(3, g.grad());
}

void reorder_grad(GradientContext& g) {
  if (!g.needs(1)) return;
  const Tensor places = range(index(shape(g.input(0)), {0}));
  const Tensor ordered = raw_op("SparseReorder", {g.input(0), places, g.input(2)})[1];
  g.set(1, gather(g.grad(1), math::invert_permutation(ordered), 0));
}

void slice_grad(GradientContext& g) {
  if (!g.needs(1)) return;
  g.set(1, op1("SparseSliceGrad", {g.grad(1), g.input(0), g.input(3), g.output(0)}));
}

void add_grad(GradientContext& g) {
  const auto grads = raw_op("SparseAddGrad", {g.grad(1), g.input(0), g.input(3), g.output(0)});
  if (g.needs(1)) g.set(1, grads[0]);
  if (g.needs(4)) g.set(4, grads[1]);
}

void reduce_sum_grad(GradientContext& g) {
  if (!g.needs(1)) return;
  const Tensor &indices = g.input(0), &dims = g.input(2);
  // The shape with 1 for the reduced axes, which is that of the sum of the sizes alone.
  const auto axes = internal::known_ints(g.input(3));
  const auto sizes = internal::known_ints(dims);
  if (!axes || !sizes) {
    throw InvalidArgumentError(
        "The gradient of SparseReduceSum needs a shape and axes that are known while tracing.");
  }
  std::vector<std::int64_t> kept = *sizes;
  const auto rank = static_cast<std::int64_t>(kept.size());
  for (std::int64_t axis : *axes) kept[static_cast<std::size_t>((axis + rank) % rank)] = 1;
  if (axes->empty()) kept.assign(kept.size(), 1);
  std::vector<std::int64_t> scale(kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    scale[k] = kept[k] == 0 ? 1 : (*sizes)[k] / kept[k];
    if (scale[k] == 0) scale[k] = 1;
  }
  const Tensor places = floordiv(indices, internal::int_vector(scale, DType::kInt64));
  g.set(1, gather_nd(tandem::reshape(g.grad(), IntList(kept)), places));
}

void fill_grad(GradientContext& g) {
  const auto grads = raw_op("SparseFillEmptyRowsGrad", {g.output(3), g.grad(1)});
  if (g.needs(1)) g.set(1, grads[0]);
  if (g.needs(3)) g.set(3, grads[1]);
}

// For each element the place in the dense side that it met.
Tensor places_in_dense(GradientContext& g) {
  const Tensor &indices = g.input(0), &dims = g.input(2), &dense = g.input(3);
  const Tensor sizes = shape(dense, DType::kInt64);
  const Tensor missing = tandem::reshape(size(dims) - size(sizes), {1});
  const Tensor whole =
      tandem::concat({fill(IntList(missing), internal::int_scalar(1, DType::kInt64)), sizes}, 0);
  const Tensor places = floordiv(indices, floordiv(dims, whole));
  const Tensor begin = tandem::concat({internal::int_vector({0}, DType::kInt32), missing}, 0);
  return tandem::slice(places, IntList(begin), {-1, -1});
}

void cwise_grad(GradientContext& g, bool multiply) {
  const Tensor places = places_in_dense(g);
  const Tensor met = gather_nd(g.input(3), places);
  if (g.needs(1)) g.set(1, multiply ? g.grad() * met : g.grad() / met);
  if (g.needs(3)) {
    const Tensor each = multiply ? g.grad() * g.input(1) : g.grad() * (-g.input(1) / (met * met));
    g.set(3, scatter_nd(places, each, IntList(shape(g.input(3), DType::kInt64))));
  }
}
void cwise_mul_grad(GradientContext& g) { cwise_grad(g, true); }
void cwise_div_grad(GradientContext& g) { cwise_grad(g, false); }

void softmax_grad(GradientContext& g) {
  if (!g.needs(1)) return;
  const Tensor &indices = g.input(0), &dims = g.input(2), &y = g.output();
  const Tensor sums = op1("SparseReduceSum",
                          {indices, y * g.grad(), dims, internal::int_vector({-1}, DType::kInt32)},
                          {{"keep_dims", true}});
  const Tensor apart = op1("SparseDenseCwiseAdd", {indices, g.grad(), dims, -sums});
  g.set(1, apart * y);
}

// ---- Declarations ----

const OpRegistration kToDense{
    {.name = "SparseToDense",
     .inputs = "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: "
               "T",
     .outputs = "dense: T",
     .attrs = "validate_indices: bool = true; T: type; Tindices: index",
     .shape = to_dense_shape,
     .gradient = to_dense_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "A value at the given indices and default_value elsewhere."}};

const OpRegistration kMatMul{
    {.name = "SparseTensorDenseMatMul",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: int64, b: T",
     .outputs = "product: T",
     .attrs = "T: type; Tindices: index = int64; adjoint_a: bool = false; adjoint_b: bool = false",
     .shape = matmul_shape,
     .gradient = matmul_grad,
     .traits = {.host_inputs = 0b100},
     .flops = flops::sparse_dense_matmul,
     .doc = "The product of a sparse and a dense matrix."}};

const OpRegistration kDenseAdd{
    {.name = "SparseTensorDenseAdd",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
     .outputs = "output: T",
     .attrs = "T: numbers; Tindices: index",
     .shape = dense_add_shape,
     .gradient = dense_add_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "The sum of a sparse and a dense tensor of one shape."}};

const OpRegistration kReshape{
    {.name = "SparseReshape",
     .inputs = "input_indices: int64, input_shape: int64, new_shape: int64",
     .outputs = "output_indices: int64, output_shape: int64",
     .shape = reshape_shape,
     .gradient = not_differentiable,
     .doc = "The indices of the same elements under another shape."}};

const OpRegistration kReorder{
    {.name = "SparseReorder",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64",
     .outputs = "output_indices: int64, output_values: T",
     .attrs = "T: type",
     .shape = reorder_shape,
     .gradient = reorder_grad,
     .doc = "The elements in row-major order."}};

const OpRegistration kSlice{
    {.name = "SparseSlice",
     .inputs = "indices: int64, values: T, shape: int64, start: int64, size: int64",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "T: type",
     .shape = slice_shape,
     .gradient = slice_grad,
     .doc = "The elements of a block, which ends where the tensor does."}};

const OpRegistration kSliceGrad{
    {.name = "SparseSliceGrad",
     .inputs = "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: "
               "int64",
     .outputs = "val_grad: T",
     .attrs = "T: numbers",
     .shape = slice_grad_shape,
     .doc = "The gradient of SparseSlice towards the values."}};

const OpRegistration kConcat{
    {.name = "SparseConcat",
     .inputs = "indices: N * int64, values: N * T, shapes: N * int64",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "concat_dim: int; N: int >= 2; T: type",
     .shape = concat_shape,
     .gradient = not_differentiable,
     .doc = "Sparse tensors one after the other along an axis."}};

const OpRegistration kAdd{
    {.name = "SparseAdd",
     .inputs = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, "
               "b_shape: int64, thresh: Treal",
     .outputs = "sum_indices: int64, sum_values: T, sum_shape: int64",
     .attrs = "T: numbers; Treal: reals",
     .shape = add_shape,
     .gradient = add_grad,
     .doc = "The sum of two sparse tensors without elements below a threshold."}};

const OpRegistration kAddGrad{
    {.name = "SparseAddGrad",
     .inputs = "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
     .outputs = "a_val_grad: T, b_val_grad: T",
     .attrs = "T: numbers",
     .shape = add_grad_shape,
     .gradient = not_differentiable,
     .doc = "The gradient of SparseAdd towards the values."}};

constexpr OpDecl reduction(const char* name, const char* attrs, GradientFn gradient,
                           const char* doc) {
  return {.name = name,
          .inputs =
              "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: "
              "int32",
          .outputs = "output: T",
          .attrs = attrs,
          .shape = reduce_shape,
          .gradient = gradient,
          .traits = {.host_inputs = 0b1100},
          .doc = doc};
}
const OpRegistration kReduceSum(reduction("SparseReduceSum", "keep_dims: bool = false; T: numbers",
                                          reduce_sum_grad, "Sums of the elements, dense."));
const OpRegistration kReduceMax(reduction("SparseReduceMax", "keep_dims: bool = false; T: reals",
                                          nullptr,
                                          "The largest of the elements, dense; 0 where "
                                          "there is none."));

const OpRegistration kFill{
    {.name = "SparseFillEmptyRows",
     .inputs = "indices: int64, values: T, dense_shape: int64, default_value: T",
     .outputs = "output_indices: int64, output_values: T, empty_row_indicator: bool, "
                "reverse_index_map: int64",
     .attrs = "T: type",
     .shape = fill_shape,
     .gradient = fill_grad,
     .doc = "An element default_value in rows that have none."}};

const OpRegistration kFillGrad{{.name = "SparseFillEmptyRowsGrad",
                                .inputs = "reverse_index_map: int64, grad_values: T",
                                .outputs = "d_values: T, d_default_value: T",
                                .attrs = "T: type",
                                .shape = fill_grad_shape,
                                .doc = "The gradient of SparseFillEmptyRows."}};

constexpr OpDecl cwise(const char* name, GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",
          .outputs = "output: T",
          .attrs = "T: numbers",
          .shape = cwise_shape,
          .gradient = gradient,
          .doc = doc};
}
const OpRegistration kCwiseMul(cwise("SparseDenseCwiseMul", cwise_mul_grad,
                                     "The elements times those of a dense tensor at their indices, "
                                     "which is broadcast."));
const OpRegistration kCwiseDiv(cwise("SparseDenseCwiseDiv", cwise_div_grad,
                                     "The elements divided by those of a dense tensor."));
const OpRegistration kCwiseAdd(cwise("SparseDenseCwiseAdd", nullptr,
                                     "The elements plus those of a dense tensor."));

const OpRegistration kSoftmax{{.name = "SparseSoftmax",
                               .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64",
                               .outputs = "output: T",
                               .attrs = "T: {half, float, double}",
                               .shape = cwise_shape,
                               .gradient = softmax_grad,
                               .doc = "Softmax over the elements of each row of the last axis."}};

Tensor reduce(const OpRegistration& op, const sparse::SparseTensor& x, const IntList& axes,
              bool keepdims) {
  return call1(op, {x.indices, x.values, x.dense_shape, axes.tensor(DType::kInt32)},
               {{"keep_dims", keepdims}});
}

}  // namespace

namespace sparse {

Int64Tensor::Int64Tensor(Tensor tensor) : Tensor(std::move(tensor)) {
  if (!defined() || dtype() == DType::kInt64) return;
  if (!is_integer(dtype())) {
    throw InvalidArgumentError(
        cat("Indices and the dense shape of a SparseTensor must be integers, got ", dtype(),
            ". Cast them: td::cast(x, td::int64)."));
  }
  Tensor::operator=(cast(*this, DType::kInt64));
}

void append_printed(tandem::internal::PrintedArguments& arguments, const SparseTensor& tensor) {
  arguments.append_text("SparseTensor(indices=");
  arguments.append_tensor(tensor.indices);
  arguments.append_text(", values=");
  arguments.append_tensor(tensor.values);
  arguments.append_text(", shape=");
  arguments.append_tensor(tensor.dense_shape);
  arguments.append_text(")");
}

SparseTensor from_dense(Tensor tensor) {
  const Tensor places = where(tandem::not_equal(tensor, zeros_like(tensor)));
  return {places, gather_nd(tensor, places), shape(tensor, DType::kInt64)};
}

Tensor to_dense(const SparseTensor& x, double default_value, bool validate_indices) {
  return call1(kToDense,
               {x.indices, x.dense_shape, x.values,
                cast(Tensor(Array::scalar(default_value)), x.values.dtype())},
               {{"validate_indices", validate_indices}});
}

Tensor sparse_dense_matmul(const SparseTensor& a, Tensor b, bool adjoint_a, bool adjoint_b) {
  return call1(kMatMul, {a.indices, a.values, a.dense_shape, std::move(b)},
               {{"adjoint_a", adjoint_a}, {"adjoint_b", adjoint_b}});
}

SparseTensor reshape(const SparseTensor& x, const IntList& shape) {
  auto out = call(kReshape, {x.indices, x.dense_shape, shape.tensor(DType::kInt64)});
  return {std::move(out[0]), x.values, std::move(out[1])};
}

SparseTensor reorder(const SparseTensor& x) {
  auto out = call(kReorder, {x.indices, x.values, x.dense_shape});
  return {std::move(out[0]), std::move(out[1]), x.dense_shape};
}

SparseTensor slice(const SparseTensor& x, const IntList& start, const IntList& size) {
  auto out = call(kSlice, {x.indices, x.values, x.dense_shape, start.tensor(DType::kInt64),
                           size.tensor(DType::kInt64)});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

SparseTensor concat(const std::vector<SparseTensor>& parts, std::int64_t axis) {
  std::vector<Tensor> inputs;
  for (const SparseTensor& part : parts) inputs.push_back(part.indices);
  for (const SparseTensor& part : parts) inputs.push_back(part.values);
  for (const SparseTensor& part : parts) inputs.push_back(part.dense_shape);
  auto out = call(kConcat, inputs, {{"concat_dim", axis}, {"N", parts.size()}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

SparseTensor add(const SparseTensor& a, const SparseTensor& b, double threshold) {
  const DType dtype = a.values.dtype();
  const DType real = dtype == DType::kComplex64    ? DType::kFloat
                     : dtype == DType::kComplex128 ? DType::kDouble
                                                   : dtype;
  auto out = call(kAdd, {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape,
                         cast(Tensor(Array::scalar(threshold)), real)});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

Tensor add(const SparseTensor& a, Tensor dense) {
  return call1(kDenseAdd, {a.indices, a.values, a.dense_shape, std::move(dense)});
}

Tensor reduce_sum(const SparseTensor& x, const IntList& axes, bool keepdims) {
  return reduce(kReduceSum, x, axes, keepdims);
}
Tensor reduce_max(const SparseTensor& x, const IntList& axes, bool keepdims) {
  return reduce(kReduceMax, x, axes, keepdims);
}

SparseTensor softmax(const SparseTensor& x) {
  return {x.indices, call1(kSoftmax, {x.indices, x.values, x.dense_shape}), x.dense_shape};
}

FilledRows fill_empty_rows(const SparseTensor& x, Tensor default_value) {
  auto out = call(kFill, {x.indices, x.values, x.dense_shape, std::move(default_value)});
  return {{std::move(out[0]), std::move(out[1]), x.dense_shape}, std::move(out[2])};
}

}  // namespace sparse
}  // namespace tandem
