// Ragged arrays: values and row splits, as TensorFlow's RaggedTensor has them. Called by name
// (raw_op, imported graphs).

#include <string>
#include <vector>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::add_sizes;
using internal::dims_between;
using internal::kUnknown;
using internal::vector_of;

// ---- Shapes ----

void to_tensor_shape(InferenceContext& c) {
  const auto& types = c.attr<std::vector<std::string>>("row_partition_types");
  if (types.empty()) c.fail("row_partition_types is empty.");
  const int ragged = static_cast<int>(types.size()) - (types.front() == "FIRST_DIM_SIZE" ? 1 : 0);
  const auto asked = c.input_ints(0);
  c.require_rank_at_least(1, 1);
  const PartialShape& values = c.input(1);
  if (c.input(0).has_rank() && c.input(0).rank() == 0) {
    if (asked && asked->front() != -1) c.fail("shape must be a vector, or the scalar -1.");
  } else {
    c.require_rank(0, 1);
  }
  PartialShape out = c.input(0).has_rank() && c.input(0).rank() == 1 ? c.input_as_shape(0)
                                                                     : PartialShape::unknown();
  if (!values.has_rank()) return c.set_output(0, out);
  if (!out.has_rank()) {
    out = PartialShape(
        std::vector<std::int64_t>(static_cast<std::size_t>(ragged + values.rank()), kUnknown));
  }
  if (out.rank() != ragged + values.rank()) {
    c.fail(cat("shape ", out, " does not fit values of shape ", values, " and ragged rank ", ragged,
               "."));
  }
  std::vector<std::int64_t> dims = dims_between(out, 0, ragged + 1);
  for (int i = 1; i < values.rank(); ++i) {
    dims.push_back(c.merge_dim(out.dim(ragged + i), values.dim(i), "sizes of an element"));
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void to_sparse_shape(InferenceContext& c) {
  const int splits = c.num_inputs() - 1;
  for (int i = 0; i < splits; ++i) c.require_rank(i, 1);
  c.require_rank_at_least(splits, 1);
  const PartialShape& values = c.input(splits);
  std::int64_t count = values.has_rank() ? 1 : kUnknown, rank = kUnknown;
  if (values.has_rank()) {
    rank = splits + values.rank();
    for (int i = 0; i < values.rank(); ++i) count = internal::multiply_sizes(count, values.dim(i));
  }
  c.set_output(0, PartialShape({count, rank}));
  c.set_output(1, vector_of(count));
  c.set_output(2, vector_of(rank));
}

void gather_shape(InferenceContext& c) {
  const int splits = c.num_inputs() - 2, last = c.num_outputs() - 1;
  for (int i = 0; i < splits; ++i) c.require_rank(i, 1);
  c.require_rank_at_least(splits, 1);
  const PartialShape &values = c.input(splits), &indices = c.input(splits + 1);
  if (indices.has_rank() && last != splits - 1 + indices.rank()) {
    c.fail(cat("OUTPUT_RAGGED_RANK is ", last, ", not ", splits - 1 + indices.rank(), "."));
  }
  for (int i = 0; i < last; ++i) c.set_output(i, vector_of(kUnknown));
  if (!values.has_rank()) return c.set_output(last, PartialShape::unknown());
  std::vector<std::int64_t> dims = dims_between(values, 0, values.rank());
  dims.front() = kUnknown;
  c.set_output(last, PartialShape(std::move(dims)));
}

void range_shape(InferenceContext& c) {
  std::int64_t rows = kUnknown;
  bool scalars = true;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& s = c.input(i);
    if (s.has_rank() && s.rank() > 1) c.fail(cat("input ", i, " has shape ", s, ", rank above 1."));
    scalars = scalars && s.has_rank() && s.rank() == 0;
    if (s.has_rank() && s.rank() == 1) rows = c.merge_dim(rows, s.dim(0), "lengths of the inputs");
  }
  c.set_output(0, vector_of(add_sizes(scalars ? 1 : rows, 1)));
  c.set_output(1, vector_of(kUnknown));
}

void fill_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 0);
  c.require_rank(3, 0);
  const std::int64_t count =
      c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "numbers of rows and values");
  const auto rows = internal::input_int(c, 2);
  c.set_output(0, vector_of(kUnknown));
  c.set_output(1, vector_of(kUnknown));
  c.set_output(2, vector_of(rows.value_or(kUnknown)));
  c.set_output(3, vector_of(count));
}

void fill_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.set_output(0, c.input(0));
  c.set_output(1, PartialShape::scalar());
}

// ---- Gradients ----

// Sums the rows of a gradient into those of `values` that they were copied from.
Tensor back_to_rows(const Tensor& grad, const Tensor& from, const Tensor& values) {
  return math::unsorted_segment_sum(grad, from, index(shape(values), {0}));
}

Tensor row_numbers(const Tensor& values) { return range(index(shape(values), {0})); }

// Where each row went: its number from 1 on, and 0 where the default value stands.
void to_tensor_grad(GradientContext& g) {
  if (!g.needs(1) && !g.needs(2)) return;
  const Tensor &values = g.input(1), &fallback = g.input(2);
  const Tensor grad = g.grad();
  const auto types = g.attr<std::vector<std::string>>("row_partition_types");
  const int ragged = static_cast<int>(types.size()) - (types.front() == "FIRST_DIM_SIZE" ? 1 : 0);
  const Tensor lead = index(shape(grad), {Slice(0, ragged + 1)});
  std::vector<Tensor> inputs{lead, row_numbers(values) + 1, Tensor(0)};
  for (int i = 3; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  const Tensor number =
      reshape(raw_op("RaggedTensorToTensor", inputs, {{"row_partition_types", types}})[0], {-1});
  const Tensor rows =
      reshape(grad, concat({Tensor({-1}), index(shape(values), {Slice(1, none)})}, 0));
  if (g.needs(1)) g.set(1, back_to_rows(rows, number - 1, values));
  if (g.needs(2)) {
    const Tensor unset = where(number > 0, Tensor(-1), Tensor(0));
    g.set(2, sum_to_shape_of(index(math::unsorted_segment_sum(rows, unset, Tensor(1)), {0}),
                             fallback));
  }
}

void to_sparse_grad(GradientContext& g) {
  const int values = g.num_inputs() - 1;
  if (g.needs(values)) g.set(values, reshape(g.grad(1), shape(g.input(values))));
}

void gather_grad(GradientContext& g) {
  const int splits = g.num_inputs() - 2;
  if (!g.needs(splits)) return;
  std::vector<Tensor> inputs;
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  const Tensor& values = g.input(splits);
  inputs[static_cast<std::size_t>(splits)] = row_numbers(values);
  const Tensor from = raw_op("RaggedGather", inputs,
                             {{"OUTPUT_RAGGED_RANK", g.attr<std::int64_t>("OUTPUT_RAGGED_RANK")}})
                          .back();
  g.set(splits, back_to_rows(g.grad(g.num_outputs() - 1), from, values));
}

void fill_grad(GradientContext& g) {
  if (!g.needs(1) && !g.needs(3)) return;
  const std::vector<Tensor> found = raw_op("RaggedFillEmptyRowsGrad", {g.output(3), g.grad(1)});
  if (g.needs(1)) g.set(1, found[0]);
  if (g.needs(3)) g.set(3, found[1]);
}

// ---- Declarations ----

const OpRegistration kToTensor{
    {.name = "RaggedTensorToTensor",
     .inputs = "shape: Tshape, values: T, default_value: T, "
               "row_partition_tensors: num_row_partition_tensors * Tindex",
     .outputs = "result: T",
     .attrs = "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; "
              "num_row_partition_tensors: int >= 1; row_partition_types: list(string)",
     .shape = to_tensor_shape,
     .gradient = to_tensor_grad,
     .traits = {.host_inputs = 0b1},
     .doc = "A ragged array in full: rows are cut or filled up with default_value to `shape`, "
            "where -1 stands for the longest."}};

const OpRegistration kToSparse{{.name = "RaggedTensorToSparse",
                                .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, "
                                          "rt_dense_values: T",
                                .outputs = "sparse_indices: int64, sparse_values: T, "
                                           "sparse_dense_shape: int64",
                                .attrs = "RAGGED_RANK: int >= 1; T: type; "
                                         "Tsplits: {int32, int64} = int64",
                                .shape = to_sparse_shape,
                                .gradient = to_sparse_grad,
                                .doc = "A ragged array as a sparse one."}};

const OpRegistration kGather{
    {.name = "RaggedGather",
     .inputs = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, "
               "params_dense_values: Tvalues, indices: Tindices",
     .outputs = "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
     .attrs = "Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = int64; "
              "PARAMS_RAGGED_RANK: int >= 1; OUTPUT_RAGGED_RANK: int >= 0",
     .shape = gather_shape,
     .gradient = gather_grad,
     .doc = "The rows of a ragged array that indices name."}};

const OpRegistration kRange{{.name = "RaggedRange",
                             .inputs = "starts: T, limits: T, deltas: T",
                             .outputs = "rt_nested_splits: Tsplits, rt_dense_values: T",
                             .attrs = "T: {bfloat16, float, double, int32, int64} = int32; "
                                      "Tsplits: {int32, int64} = int64",
                             .shape = range_shape,
                             .gradient = not_differentiable,
                             .doc = "A row of evenly spaced numbers for each start, limit and "
                                    "delta, of which scalars serve for all rows."}};

const OpRegistration kFill{
    {.name = "RaggedFillEmptyRows",
     .inputs = "value_rowids: int64, values: T, nrows: int64, default_value: T",
     .outputs = "output_value_rowids: int64, output_values: T, empty_row_indicator: bool, "
                "reverse_index_map: int64",
     .attrs = "T: type",
     .shape = fill_shape,
     .gradient = fill_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "A default value in every row that has none."}};

const OpRegistration kFillGrad{{.name = "RaggedFillEmptyRowsGrad",
                                .inputs = "reverse_index_map: int64, grad_values: T",
                                .outputs = "d_values: T, d_default_value: T",
                                .attrs = "T: type",
                                .shape = fill_grad_shape,
                                .gradient = not_differentiable,
                                .doc = "The gradient of RaggedFillEmptyRows."}};

}  // namespace
}  // namespace tandem
