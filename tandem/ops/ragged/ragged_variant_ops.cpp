// Ragged arrays in one variant each, as tf.map_fn and lists of them hold rows. Called by name
// (raw_op, imported graphs).

#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::vector_of;

void to_variant_shape(InferenceContext& c) {
  const int splits = c.num_inputs() - 1;
  for (int i = 0; i < splits; ++i) c.require_rank(i, 1);
  const PartialShape& values = c.input(splits);
  if (splits > 0) c.require_rank_at_least(splits, 1);
  if (!c.attr<bool>("batched_input")) return c.set_output(0, PartialShape::scalar());
  c.require_rank_at_least(0, 1);
  const PartialShape& outer = splits > 0 ? c.input(0) : values;
  const std::int64_t rows = outer.has_rank() ? outer.dim(0) : kUnknown;
  c.set_output(0, vector_of(splits == 0 ? rows : rows > 0 ? rows - 1 : kUnknown));
}

void from_variant_shape(InferenceContext& c) {
  const auto inner = c.attr<std::int64_t>("input_ragged_rank");
  const int outer = c.num_outputs() - 1;
  if (inner >= 0 && c.input(0).has_rank() && inner != outer - c.input(0).rank()) {
    c.fail(cat("output_ragged_rank is ", outer, ", not the rank of the input, ", c.input(0).rank(),
               ", and input_ragged_rank, ", inner, ", together."));
  }
  for (int i = 0; i < outer; ++i) c.set_output(i, vector_of(kUnknown));
  c.set_output(outer, PartialShape::unknown());
}

void to_variant_gradient(GradientContext& g) {
  const int values = g.num_inputs() - 1;
  if (!g.needs(values)) return;
  const Tensor splits = values > 0 ? g.input(0) : Tensor(0);
  g.set(values, raw_op("RaggedTensorToVariantGradient",
                       {g.grad(), splits, shape(g.input(values), DType::kInt32)},
                       {{"Tvalues", g.input(values).dtype()}})[0]);
}

// Goes back into a variant, or into one for each row of the outermost axis.
void from_variant_gradient(GradientContext& g) {
  const int splits = g.num_outputs() - 1, rank = g.input(0).rank();
  if (rank > 1) {
    throw UnimplementedError(
        cat("RaggedTensorFromVariant of an array of rank ", rank, " has no gradient."));
  }
  std::vector<Tensor> parts;
  for (int i = 0; i < splits; ++i) parts.push_back(g.output(i));
  parts.push_back(g.grad(splits));
  g.set(0, raw_op("RaggedTensorToVariant", parts,
                  {{"batched_input", rank < 0 ? splits > 0 : rank == 1},
                   {"Tsplits", g.attr<DType>("Tsplits")}})[0]);
}

void to_variant_gradient_shape(InferenceContext& c) {
  c.set_output(0, internal::requested_shape(c, 2));
}

const OpRegistration kToVariant{
    {.name = "RaggedTensorToVariant",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
     .outputs = "encoded_ragged: variant",
     .attrs = "RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64} = int64; "
              "batched_input: bool",
     .shape = to_variant_shape,
     .gradient = to_variant_gradient,
     .traits = {.retains_inputs = ~0u},
     .doc = "A ragged array in one variant, or each of its rows in one."}};

const OpRegistration kFromVariant{
    {.name = "RaggedTensorFromVariant",
     .inputs = "encoded_ragged: variant",
     .outputs = "output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
     .attrs = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; "
              "Tsplits: {int32, int64} = int64",
     .shape = from_variant_shape,
     .gradient = from_variant_gradient,
     .traits = {.owns_output_memory = ~0u},
     .doc = "What RaggedTensorToVariant put into a variant, or into each of an array of them."}};

const OpRegistration kToVariantGradient{
    {.name = "RaggedTensorToVariantGradient",
     .inputs = "encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32",
     .outputs = "dense_values_grad: Tvalues",
     .attrs = "Tvalues: type; Tsplits: {int32, int64} = int64",
     .shape = to_variant_gradient_shape,
     .traits = {.host_inputs = 0b100},
     .doc = "The gradient of RaggedTensorToVariant towards the values: those that the variants "
            "hold, and zeros for an empty one."}};

}  // namespace
}  // namespace tandem
