#include "tandem/ops/sparse_segment_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

// The rows of input 0 with their number replaced.
void rows_shape(InferenceContext& c, std::int64_t rows) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "lengths of indices and segment_ids");
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(0, rows);
  c.set_output(0, std::move(out));
}

void segment_shape(InferenceContext& c) { rows_shape(c, kUnknown); }

std::int64_t count_input(const InferenceContext& c, std::string_view name) {
  c.require_rank(3, 0);
  const auto n = internal::input_int(c, 3);
  if (n && *n < 0) c.fail(cat("Cannot specify a negative value for ", name));
  return n.value_or(kUnknown);
}

void counted_segment_shape(InferenceContext& c) { rows_shape(c, count_input(c, "num_segments")); }
void grad_shape(InferenceContext& c) { rows_shape(c, count_input(c, "output_dim0")); }

void grad_v2_shape(InferenceContext& c) {
  count_input(c, "dense_output_dim0");
  rows_shape(c, kUnknown);
  c.set_output(1, internal::vector_of(kUnknown));
}

void segment_grad(GradientContext& g, const char* grad_op) {
  if (!g.needs(0)) return;
  const Tensor rows = index(shape(g.input(0)), {0});
  g.set(0, internal::op1(grad_op, {g.grad(), g.input(1), g.input(2), rows}));
}

constexpr const char* kSumGradOp = "SparseSegmentSumGrad";
constexpr const char* kMeanGradOp = "SparseSegmentMeanGrad";
constexpr const char* kSqrtNGradOp = "SparseSegmentSqrtNGrad";

void sum_grad(GradientContext& g) { segment_grad(g, kSumGradOp); }
void mean_grad(GradientContext& g) { segment_grad(g, kMeanGradOp); }
void sqrt_n_grad(GradientContext& g) { segment_grad(g, kSqrtNGradOp); }

constexpr const char* kReals =
    "T: reals; Tidx: index = int32; Tsegmentids: index = int32; sparse_gradient: bool = false";
constexpr const char* kRealsCounted =
    "T: reals; Tidx: index = int32; Tnumsegments: index = int32; Tsegmentids: index = int32; "
    "sparse_gradient: bool = false";
constexpr const char* kFloats =
    "T: {bfloat16, half, float, double}; Tidx: index = int32; Tsegmentids: index = int32; "
    "sparse_gradient: bool = false";
constexpr const char* kFloatsCounted =
    "T: {bfloat16, half, float, double}; Tidx: index = int32; Tnumsegments: index = int32; "
    "Tsegmentids: index = int32; sparse_gradient: bool = false";

constexpr OpDecl segment(const char* name, const char* attrs, GradientFn gradient,
                         const char* doc) {
  return {.name = name,
          .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids",
          .outputs = "output: T",
          .attrs = attrs,
          .shape = segment_shape,
          .gradient = gradient,
          .doc = doc};
}
constexpr OpDecl counted(const char* name, const char* attrs, GradientFn gradient,
                         const char* doc) {
  OpDecl decl = segment(name, attrs, gradient, doc);
  decl.inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments";
  decl.shape = counted_segment_shape;
  decl.traits.host_inputs = 0b1000;
  return decl;
}
constexpr OpDecl grad_of(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
          .outputs = "output: T",
          .attrs =
              "T: {bfloat16, half, float, double}; Tidx: index = int32; Tsegmentids: index = "
              "int32",
          .shape = grad_shape,
          .traits = {.host_inputs = 0b1000},
          .doc = doc};
}
constexpr OpDecl grad_v2_of(const char* name, const char* doc) {
  OpDecl decl = grad_of(name, doc);
  decl.inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32";
  decl.outputs = "output: T, sorted_unique_indices: Tidx";
  decl.shape = grad_v2_shape;
  return decl;
}

constexpr const char* kSumDoc = "The sum of picked rows for each of ids that never fall.";
constexpr const char* kMeanDoc = "The mean of picked rows for each of ids that never fall.";
constexpr const char* kSqrtNDoc =
    "The sum of picked rows for each of ids that never fall, divided by the root of their number.";
constexpr const char* kGradDoc = "The gradient of the op of that name towards its data.";
constexpr const char* kGradV2Doc =
    "The gradient of the op of that name: the rows that are not zero, and which they are.";

const OpRegistration kSum(segment("SparseSegmentSum", kReals, sum_grad, kSumDoc));
const OpRegistration kMean(segment("SparseSegmentMean", kFloats, mean_grad, kMeanDoc));
const OpRegistration kSqrtN(segment("SparseSegmentSqrtN", kFloats, sqrt_n_grad, kSqrtNDoc));
const OpRegistration kSumCounted(counted("SparseSegmentSumWithNumSegments", kRealsCounted, sum_grad,
                                         kSumDoc));
const OpRegistration kMeanCounted(counted("SparseSegmentMeanWithNumSegments", kFloatsCounted,
                                          mean_grad, kMeanDoc));
const OpRegistration kSqrtNCounted(counted("SparseSegmentSqrtNWithNumSegments", kFloatsCounted,
                                           sqrt_n_grad, kSqrtNDoc));
const OpRegistration kSumGrad(grad_of(kSumGradOp, kGradDoc));
const OpRegistration kMeanGrad(grad_of(kMeanGradOp, kGradDoc));
const OpRegistration kSqrtNGrad(grad_of(kSqrtNGradOp, kGradDoc));
const OpRegistration kSumGradV2(grad_v2_of("SparseSegmentSumGradV2", kGradV2Doc));
const OpRegistration kMeanGradV2(grad_v2_of("SparseSegmentMeanGradV2", kGradV2Doc));
const OpRegistration kSqrtNGradV2(grad_v2_of("SparseSegmentSqrtNGradV2", kGradV2Doc));

Tensor reduce(const OpRegistration& open, const OpRegistration& counted, Tensor data,
              Tensor indices, Tensor segment_ids, Tensor num_segments) {
  if (!num_segments.defined()) {
    return call1(open, {std::move(data), std::move(indices), std::move(segment_ids)});
  }
  return call1(counted, {std::move(data), std::move(indices), std::move(segment_ids),
                         std::move(num_segments)});
}

}  // namespace

namespace sparse {

Tensor segment_sum(Tensor data, Tensor indices, Tensor segment_ids, Tensor num_segments) {
  return reduce(kSum, kSumCounted, std::move(data), std::move(indices), std::move(segment_ids),
                std::move(num_segments));
}
Tensor segment_mean(Tensor data, Tensor indices, Tensor segment_ids, Tensor num_segments) {
  return reduce(kMean, kMeanCounted, std::move(data), std::move(indices), std::move(segment_ids),
                std::move(num_segments));
}
Tensor segment_sqrt_n(Tensor data, Tensor indices, Tensor segment_ids, Tensor num_segments) {
  return reduce(kSqrtN, kSqrtNCounted, std::move(data), std::move(indices), std::move(segment_ids),
                std::move(num_segments));
}

}  // namespace sparse
}  // namespace tandem
