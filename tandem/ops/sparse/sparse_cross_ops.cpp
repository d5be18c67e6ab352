// Crossed features: one value for each combination of the values in a row. Called by name (raw_op,
// imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

void cross_shape(InferenceContext& c) {
  c.set_output(0, PartialShape({PartialShape::kUnknown, 2}));
  c.set_output(1, PartialShape({PartialShape::kUnknown}));
  c.set_output(2, PartialShape({2}));
}

#define TANDEM_FEATURES                                           \
  "indices: N * int64, values: sparse_types, shapes: N * int64, " \
  "dense_inputs: dense_types"
#define TANDEM_FEATURE_TYPES "N: int >= 0; sparse_types: list(type); dense_types: list(type)"

const OpRegistration kCross{
    {.name = "SparseCross",
     .inputs = TANDEM_FEATURES,
     .outputs = "output_indices: int64, output_values: out_type, output_shape: int64",
     .attrs = TANDEM_FEATURE_TYPES
     "; hashed_output: bool; num_buckets: int >= 0; hash_key: int; out_type: {int64, string}; "
     "internal_type: {int64, string}",
     .shape = cross_shape,
     .gradient = not_differentiable,
     .doc = "The combinations of the values in each row, joined by '_X_' or hashed to a bucket."}};

const OpRegistration kCrossV2{
    {.name = "SparseCrossV2",
     .inputs = TANDEM_FEATURES ", sep: string",
     .outputs = "output_indices: int64, output_values: string, output_shape: int64",
     .attrs = TANDEM_FEATURE_TYPES,
     .shape = cross_shape,
     .gradient = not_differentiable,
     .doc = "The combinations of the values in each row, joined by a separator."}};

const OpRegistration kCrossHashed{
    {.name = "SparseCrossHashed",
     .inputs = TANDEM_FEATURES ", num_buckets: int64, strong_hash: bool, salt: int64",
     .outputs = "output_indices: int64, output_values: int64, output_shape: int64",
     .attrs = TANDEM_FEATURE_TYPES,
     .shape = cross_shape,
     .gradient = not_differentiable,
     .doc = "The combinations of the values in each row, hashed to a bucket; strong_hash takes the "
            "two numbers of salt as a key."}};

}  // namespace
}  // namespace tandem
