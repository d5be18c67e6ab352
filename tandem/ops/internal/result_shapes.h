#pragma once

#include <vector>

#include "tandem/graph/function_shapes.h"
#include "tandem/graph/inference_context.h"

namespace tandem::internal {

/// What is known of the inputs from `first` on, which a node hands to the functions that it runs.
std::vector<KnownValue> known_args(const InferenceContext& c, int first);

/// What is known of the results of a function that a node runs; refuses one that returns another
/// number of values than the node has outputs.
std::vector<KnownValue> known_results(const InferenceContext& c, const FunctionRef& f,
                                      const std::vector<KnownValue>& args);

/// What holds for a value that is one or the other.
KnownValue either(const KnownValue& a, const KnownValue& b);

/// Sets the outputs' shapes to what is known of the results. Of the attribute output_shapes, if the
/// op has it, only the length is checked: it may be wrong.
void set_results(InferenceContext& c, const std::vector<KnownValue>& results);

/// The outputs of a node that runs one of these functions.
void set_results_of_branches(InferenceContext& c, const std::vector<FunctionRef>& branches);

}  // namespace tandem::internal
