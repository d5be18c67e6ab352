// Gradient accumulators, by which replicas keep in step. Their ops are called by name (raw_op,
// imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/named_handle.h"

namespace tandem {
namespace {

using internal::by_name;
using internal::require_handle;

#define TANDEM_DTYPE "dtype: numbers"
#define TANDEM_MAKER                                                   \
  TANDEM_DTYPE                                                         \
  "; shape: shape; container: string = ''; shared_name: string = ''; " \
  "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"

// The handle and a scalar: a step, or a number of gradients. What is taken has the accumulator's
// shape, which is not known here.
void with_scalar(InferenceContext& c) {
  require_handle(c);
  c.require_rank(1, 0);
}

void scalar_of_handle(InferenceContext& c) {
  require_handle(c);
  c.set_output(0, PartialShape::scalar());
}

void by_name_shape(InferenceContext& c) { c.set_output(0, PartialShape({2})); }

constexpr OpTraits kTraits = {.stateful = true, .cpu_only = true};

const OpRegistration kMake{
    {.name = "ResourceConditionalAccumulator",
     .outputs = "handle: resource",
     .attrs = TANDEM_MAKER,
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = kTraits,
     .doc = "Adds up gradients of one step until they are taken, as their mean or sum."}};
const OpRegistration kMakeByName(by_name(kMake, "ConditionalAccumulator", ""));
const OpRegistration kMakeSparse{{.name = "SparseConditionalAccumulator",
                                  .outputs = "handle: Ref(string)",
                                  .attrs = TANDEM_MAKER,
                                  .shape = by_name_shape,
                                  .gradient = not_differentiable,
                                  .traits = kTraits,
                                  .doc = "Adds up gradients that are rows with indices."}};

const OpRegistration kApply{{.name = "ResourceAccumulatorApplyGradient",
                             .inputs = "handle: resource, local_step: int64, gradient: dtype",
                             .attrs = TANDEM_DTYPE,
                             .shape = with_scalar,
                             .gradient = not_differentiable,
                             .traits = kTraits,
                             .doc = "Adds a gradient, unless local_step is below the "
                                    "accumulator's step."}};
const OpRegistration kApplyByName(by_name(kApply, "AccumulatorApplyGradient",
                                          "handle: Ref(string), local_step: int64, "
                                          "gradient: dtype"));
const OpRegistration kApplyRows{
    {.name = "SparseAccumulatorApplyGradient",
     .inputs = "handle: Ref(string), local_step: int64, gradient_indices: int64, "
               "gradient_values: dtype, gradient_shape: int64",
     .attrs = TANDEM_DTYPE "; has_known_shape: bool",
     .shape = with_scalar,
     .gradient = not_differentiable,
     .traits = kTraits,
     .doc = "Adds a gradient's rows, unless local_step is below the accumulator's step. Indices "
            "are expected in ascending order."}};

const OpRegistration kTake{
    {.name = "ResourceAccumulatorTakeGradient",
     .inputs = "handle: resource, num_required: int32",
     .outputs = "average: dtype",
     .attrs = TANDEM_DTYPE,
     .shape = with_scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true,
                .owns_output_memory = ~std::uint32_t{0},
                .host_inputs = 0b10,
                .cpu_only = true},
     .doc = "Waits for so many gradients, takes them, and goes on to the next step."}};
const OpRegistration kTakeByName(by_name(kTake, "AccumulatorTakeGradient",
                                         "handle: Ref(string), num_required: int32"));
const OpRegistration kTakeRows{
    {.name = "SparseAccumulatorTakeGradient",
     .inputs = "handle: Ref(string), num_required: int32",
     .outputs = "indices: int64, values: dtype, shape: int64",
     .attrs = TANDEM_DTYPE,
     .shape = with_scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true,
                .owns_output_memory = ~std::uint32_t{0},
                .host_inputs = 0b10,
                .cpu_only = true},
     .doc = "Waits for so many gradients and takes their rows; a row's mean is over the gradients "
            "that had it."}};

const OpRegistration kCount{{.name = "ResourceAccumulatorNumAccumulated",
                             .inputs = "handle: resource",
                             .outputs = "num_accumulated: int32",
                             .shape = scalar_of_handle,
                             .gradient = not_differentiable,
                             .traits = kTraits,
                             .doc = "The number of gradients that are there."}};
const OpRegistration kCountByName(by_name(kCount, "AccumulatorNumAccumulated",
                                          "handle: Ref(string)"));
const OpRegistration kSetStep{{.name = "ResourceAccumulatorSetGlobalStep",
                               .inputs = "handle: resource, new_global_step: int64",
                               .shape = with_scalar,
                               .gradient = not_differentiable,
                               .traits = kTraits,
                               .doc = "Says which step's gradients are taken in."}};
const OpRegistration kSetStepByName(by_name(kSetStep, "AccumulatorSetGlobalStep",
                                            "handle: Ref(string), new_global_step: int64"));

}  // namespace
}  // namespace tandem
