// Distances between sparse rows. Called by name (raw_op, imported graphs).

#include <algorithm>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

void distance_shape(InferenceContext& c) {
  for (const int i : {0, 3}) c.require_rank(i, 2);
  for (const int i : {1, 2, 4, 5}) c.require_rank(i, 1);
  const auto ours = c.input_ints(2), theirs = c.input_ints(5);
  if (!ours || !theirs) return c.set_output(0, PartialShape::unknown());
  if (ours->size() != theirs->size()) {
    c.fail(cat("The hypothesis has rank ", ours->size(), " but the truth ", theirs->size(), "."));
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i + 1 < ours->size(); ++i) {
    dims.push_back(std::max((*ours)[i], (*theirs)[i]));
    if (dims.back() < 0) c.fail(cat("Size ", i, " is negative: ", dims.back()));
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

const OpRegistration kDistance{
    {.name = "EditDistance",
     .inputs = "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
               "truth_indices: int64, truth_values: T, truth_shape: int64",
     .outputs = "output: float",
     .attrs = "normalize: bool = true; T: type",
     .shape = distance_shape,
     .gradient = not_differentiable,
     .doc = "The Levenshtein distances between the rows of two sparse arrays, by default as parts "
            "of the truth's lengths."}};

void unravel_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (indices.rank() > 1) c.fail(cat("indices must be a scalar or a vector, not ", indices));
  std::vector<std::int64_t> dims{c.input(1).has_rank() ? c.input(1).dim(0) : internal::kUnknown};
  if (indices.rank() == 1) dims.push_back(indices.dim(0));
  c.set_output(0, PartialShape(std::move(dims)));
}

const OpRegistration kUnravel{{.name = "UnravelIndex",
                               .inputs = "indices: Tidx, dims: Tidx",
                               .outputs = "output: Tidx",
                               .attrs = "Tidx: index = int32",
                               .shape = unravel_shape,
                               .gradient = not_differentiable,
                               .traits = {.host_inputs = 0b10},
                               .doc = "Places in an array of shape dims, by their row-major "
                                      "numbers: one column an index."}};

}  // namespace
}  // namespace tandem
