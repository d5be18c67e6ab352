// Ragged arrays in one variant each, as tf.map_fn and lists of them hold rows. Called by name
// (raw_op, imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

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
  if (inner >= 0 && c.input(0).has_rank() && c.input(0).rank() + inner != outer) {
    c.fail(cat("output_ragged_rank is ", outer, ", not the ", c.input(0).rank() + inner,
               " of the input's shape and input_ragged_rank."));
  }
  for (int i = 0; i < outer; ++i) c.set_output(i, vector_of(kUnknown));
  c.set_output(outer, PartialShape::unknown());
}

const OpRegistration kToVariant{
    {.name = "RaggedTensorToVariant",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
     .outputs = "encoded_ragged: variant",
     .attrs = "RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64} = int64; "
              "batched_input: bool",
     .shape = to_variant_shape,
     .traits = {.keeps_inputs = ~0u},
     .doc = "A ragged array in one variant, or each of its rows in one."}};

const OpRegistration kFromVariant{
    {.name = "RaggedTensorFromVariant",
     .inputs = "encoded_ragged: variant",
     .outputs = "output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
     .attrs = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; "
              "Tsplits: {int32, int64} = int64",
     .shape = from_variant_shape,
     .traits = {.brings_memory = ~0u},
     .doc = "What RaggedTensorToVariant put into a variant, or into each of an array of them."}};

}  // namespace
}  // namespace tandem
