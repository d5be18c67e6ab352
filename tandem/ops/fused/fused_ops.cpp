// Several ops in one, as optimisers write them. Called by name.

#include <algorithm>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/attention_axes.h"
#include "tandem/graph/internal/window.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_product.h"

namespace tandem {
namespace {

// The first size of a result to which something is added, which may be repeated, or be added
// repeatedly, if it is 1 on either side.
std::int64_t rows_with_addend(const InferenceContext& c, std::int64_t rows) {
  const auto& fused = c.attr<std::vector<std::string>>("fused_ops");
  const auto add = std::find(fused.begin(), fused.end(), "Add");
  const auto i = static_cast<int>(add - fused.begin()) + 2;
  if (add == fused.end() || i >= c.num_inputs() || !c.input(i).has_rank() || c.input(i).rank() == 0)
    return rows;
  const std::int64_t other = c.input(i).dim(0);
  return rows == 1 || (rows < 0 && other > 1) ? other : rows;
}

void fused_matmul_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  const bool turn_a = c.attr<bool>("transpose_a"), turn_b = c.attr<bool>("transpose_b");
  const PartialShape& a = c.input(0);
  PartialShape b = c.input(1);
  const auto& sizes = c.attr<std::vector<std::int64_t>>("b_sizes");
  if (!sizes.empty()) b = PartialShape(sizes);
  if (b.has_rank() && b.rank() != 2) c.fail(cat("b must be a matrix, but has shape ", b, "."));
  c.merge_dim(a.dim(turn_a ? 0 : 1), b.dim(turn_b ? 1 : 0), "the inner sizes");
  const std::int64_t rows = rows_with_addend(c, a.dim(turn_a ? 1 : 0));
  c.set_output(0, PartialShape({rows, b.dim(turn_b ? 0 : 1)}));
}

const OpRegistration kFusedMatMul{
    {.name = "_FusedMatMul",
     .inputs = "a: T, b: Tb, args: num_args * T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float}; "
              "Tb: {bfloat16, half, float, variant}; num_args: int >= 0; fused_ops: list(string) = "
              "[]; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2; b_sizes: list(int) = []",
     .shape = fused_matmul_shape,
     .fuse = internal::pack_weights,
     .flops = flops::matmul,
     .doc = "A product of matrices, then BiasAdd, perhaps Add of a matrix, and an activation, as "
            "fused_ops lists them; args are the bias and the matrix. b may be made by "
            "_PackWeights; its shape is then b_sizes."}};

void fused_conv_shape(InferenceContext& c) {
  const WindowAttrs w = read_conv_attrs(c);
  c.require_rank(0, 4);
  const auto& sizes = c.attr<std::vector<std::int64_t>>("filter_sizes");
  if (sizes.size() != 4) c.fail(cat("filter_sizes must be 4 sizes, not ", sizes.size(), "."));
  const auto output = [&](int i) {
    return w.axis(i, c.input(0).dim(w.spatial_axis(i)), sizes[static_cast<std::size_t>(i)]).output;
  };
  const std::int64_t batch = rows_with_addend(c, c.input(0).dim(0));
  const std::int64_t depth = c.attr<bool>("depthwise") ? sizes[2] * sizes[3] : sizes[3];
  c.set_output(0, PartialShape({batch, output(0), output(1), depth}));
}

const OpRegistration kFusedConv2D{
    {.name = "_FusedConv2D",
     .inputs = "input: T, filter: TFilter, args: TArgs",
     .outputs = "output: Tout",
     .attrs = "T: {bfloat16, half, float}; TFilter: {bfloat16, half, float, variant}; "
              "TArgs: list(type); Tout: {bfloat16, half, float}; filter_sizes: list(int); "
              "depthwise: bool = false; "
              "fused_ops: list(string) = []; leakyrelu_alpha: float = 0.2; strides: list(int); "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = fused_conv_shape,
     .traits = {.may_reuse = 0b1100},
     .fuse = internal::pack_weights,
     .flops = flops::fused_conv,
     .doc =
         "Conv2D or DepthwiseConv2dNative with a filter of filter_sizes, then BiasAdd, Add of an "
         "image and an activation, as far as fused_ops lists them; args are the bias and the "
         "image. The filter may be made by _PackWeights."}};

void packed_shape(InferenceContext& c) { c.set_output(0, PartialShape::scalar()); }

const OpRegistration kPackWeights{
    {.name = "_PackWeights",
     .inputs = "plain: T",
     .outputs = "packed: variant",
     .attrs = "T: {bfloat16, float}",
     .shape = packed_shape,
     .traits = {.keeps_state = true, .retains_inputs = 0b1, .owns_output_memory = 0b1},
     .doc = "Constant weights for a fused op, which are packed once for the "
            "processor and kept."}};

PartialShape common_shape(InferenceContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) shape = broadcast(shape, c.input(i));
  return shape;
}

void fused_elementwise_shape(InferenceContext& c) { c.set_output(0, common_shape(c)); }

// All axes but the last are summed over.
void fused_sum_shape(InferenceContext& c) {
  const PartialShape shape = common_shape(c);
  if (!shape.has_rank()) return c.set_output(0, shape);
  if (shape.rank() < 1) c.fail("a sum over all axes but the last needs an axis.");
  const std::int64_t last = shape.dim(shape.rank() - 1);
  std::vector<std::int64_t> dims;
  if (c.attr<bool>("keep_dims")) dims.assign(static_cast<std::size_t>(shape.rank() - 1), 1);
  dims.push_back(last);
  c.set_output(0, PartialShape(std::move(dims)));
}

const OpRegistration kFusedElementwise{
    {.name = "_FusedElementwise",
     .inputs = "inputs: Tin",
     .outputs = "output: T",
     .attrs = "Tin: list(type); T: {half, bfloat16, float, double}; ops: list(string); "
              "operands: list(int)",
     .shape = fused_elementwise_shape,
     .traits = {.keeps_state = true, .may_reuse = 0xffffff},
     .flops = flops::fused_elementwise,
     .doc =
         "Elementwise ops in one pass, in float, or double where all inputs are, with inputs "
         "broadcast. For each of `ops`, "
         "`operands` has their number and then each one: i is input i, -1 - k the result of op k. "
         "The last result is the output."}};

const OpRegistration kFusedSum{
    {.name = "_FusedSum",
     .inputs = "inputs: Tin",
     .outputs = "output: T",
     .attrs = "Tin: list(type); T: {half, bfloat16, float, double}; ops: list(string); "
              "operands: list(int); mean: bool = false; keep_dims: bool = false",
     .shape = fused_sum_shape,
     .traits = {.keeps_state = true},
     .flops = flops::fused_elementwise,
     .doc = "The sum or mean over all axes but the last of what _FusedElementwise would make."}};

void fused_elementwise_sums_shape(InferenceContext& c) {
  const PartialShape shape = common_shape(c);
  c.set_output(0, shape);
  if (shape.has_rank() && shape.rank() < 1)
    c.fail("a sum over all axes but the last needs an axis.");
  const auto& ranks = c.attr<std::vector<std::int64_t>>("sum_ranks");
  if (ranks.size() != static_cast<std::size_t>(c.attr<std::int64_t>("num_sums")))
    c.fail(cat("sum_ranks must have num_sums numbers, not ", ranks.size(), "."));
  const auto results = c.attr<std::vector<std::int64_t>>("results").size();
  if (results != ranks.size() + 1)
    c.fail(cat("results must have one number for each output, not ", results, "."));
  int output = 1;
  for (const std::int64_t rank : ranks) {
    if (rank < 1 || rank > Shape::kMaxRank) c.fail(cat("a sum cannot have rank ", rank, "."));
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
    dims.back() = shape.has_rank() ? shape.dim(shape.rank() - 1) : PartialShape::kUnknown;
    c.set_output(output++, PartialShape(std::move(dims)));
  }
}

const OpRegistration kFusedElementwiseSums{
    {.name = "_FusedElementwiseSums",
     .inputs = "inputs: Tin",
     .outputs = "output: T, sums: num_sums * Tsum",
     .attrs = "Tin: list(type); T: {half, bfloat16, float, double}; "
              "Tsum: {half, bfloat16, float, double}; num_sums: int >= 1; "
              "ops: list(string); operands: list(int); results: list(int); sum_ranks: list(int)",
     .shape = fused_elementwise_sums_shape,
     .traits = {.keeps_state = true, .may_reuse = 0xffffff},
     .flops = flops::fused_elementwise,
     .doc = "_FusedElementwise with several results, which `results` names as `operands` does: the "
            "output, and values of which only the sums over all axes but the last are wanted, with "
            "axes "
            "of size 1 in front as sum_ranks says."}};

void moments_shape(InferenceContext& c) {
  const PartialShape& x = c.input(0);
  const char* const names[] = {"keep_mean_dims", "keep_variance_dims"};
  for (int i = 0; i < 2; ++i) {
    if (!x.has_rank()) {
      c.set_output(i, x);
      continue;
    }
    if (x.rank() < 2) c.fail(cat("x must have rank 2 or more, but has shape ", x, "."));
    std::vector<std::int64_t> dims;
    if (c.attr<bool>(names[i])) dims.assign(static_cast<std::size_t>(x.rank() - 1), 1);
    dims.push_back(x.dim(x.rank() - 1));
    c.set_output(i, PartialShape(std::move(dims)));
  }
}

const OpRegistration kMoments{
    {.name = "_Moments",
     .inputs = "x: T",
     .outputs = "mean: Tout, variance: Tout",
     .attrs = "T: {bfloat16, half, float}; Tout: {bfloat16, half, float}; "
              "keep_mean_dims: bool = false; keep_variance_dims: bool = false",
     .shape = moments_shape,
     .flops = flops::per_input<3>,
     .doc = "The mean and the variance over all axes but the last, read once."}};

void lstm_gates_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  const std::int64_t columns = c.input(0).dim(1);
  if (columns > 0 && columns % 4 != 0) c.fail(cat("the gates are four, but ", columns, " wide."));
  const PartialShape own({c.input(0).dim(0), columns < 0 ? columns : columns / 4});
  const PartialShape shape = broadcast(own, c.input(1));
  c.set_output(0, shape);
  c.set_output(1, shape);
}

const OpRegistration kLstmGates{
    {.name = "_LstmGates",
     .inputs = "gates: T, cell: T",
     .outputs = "new_cell: T, output: T",
     .attrs = "T: {float}",
     .shape = lstm_gates_shape,
     .flops = flops::per_input<6>,
     .doc =
         "The end of an LSTM's step. The columns of `gates` are four groups i, f, g, o: new_cell "
         "= sigmoid(f) * cell + sigmoid(i) * tanh(g), output = sigmoid(o) * tanh(new_cell)."}};

void gru_gates_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const std::int64_t columns = c.merge_dim(c.input(0).dim(1), c.input(1).dim(1), "the gates");
  if (columns > 0 && columns % 3 != 0) c.fail(cat("the gates are three, but ", columns, " wide."));
  const PartialShape own({c.input(0).dim(0), columns < 0 ? columns : columns / 3});
  const PartialShape inner({c.input(1).dim(0), columns < 0 ? columns : columns / 3});
  c.set_output(0, broadcast(broadcast(own, inner), c.input(2)));
}

const OpRegistration kGruGates{
    {.name = "_GruGates",
     .inputs = "from_input: T, from_state: T, state: T",
     .outputs = "new_state: T",
     .attrs = "T: {float}",
     .shape = gru_gates_shape,
     .flops = flops::per_input<6>,
     .doc = "The end of a GRU's step. The columns of the first two inputs are three groups: z = "
            "sigmoid(x0 + h0), r = sigmoid(x1 + h1), new_state = z * state + (1 - z) * tanh(x2 + r "
            "* h2)."}};

void fused_attention_shape(InferenceContext& c) {
  try {
    const auto axes = AttentionAxes::read(c.attr<std::vector<std::string>>("axes"));
    const AttentionSizes sizes(axes, c.input(0), c.input(1), c.input(2));
    c.set_output(0, sizes.shape(axes.of[AttentionAxes::kOutput]));
  } catch (const InvalidArgumentError& error) {
    c.fail(error.what());
  }
}

const OpRegistration kFusedAttention{
    {.name = "_FusedAttention",
     .inputs = "query: T, key: T, value: T, args: TArgs",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float}; TArgs: list(type); fused_ops: list(string); "
              "axes: list(string); scale: float = 1",
     .shape = fused_attention_shape,
     .flops = flops::attention,
     .doc =
         "softmax(query * transpose(key)) * value for batches of matrices, whose scores never "
         "are in memory as a whole. Scores are multiplied by `scale`. fused_ops lists what is then "
         "done to them: Softmax, before "
         "and after it Mul, RealDiv, AddV2 and Sub with one of args, SelectV2 with two, a mask "
         "of what is kept and what there is elsewhere, Mask with the mask alone: elsewhere is "
         "the lowest number before the softmax and zero after it. axes names the axes of query, "
         "key, "
         "scores, value and output: batches B and N, queries T, keys S, D what a query and a key "
         "are multiplied along, E a value's elements."}};

}  // namespace
}  // namespace tandem
