// Sampled candidates, for losses that look at some of very many classes. Their ops are called by
// name (raw_op, imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"

namespace tandem {
namespace {

void sampler_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  const auto columns = c.attr<std::int64_t>("num_true");
  const PartialShape count({c.attr<std::int64_t>("num_sampled")});
  const bool known = c.input(0).has_rank();
  if (known) c.merge_dim(c.input(0).dim(1), columns, "num_true");
  c.set_output(0, count);
  c.set_output(1, PartialShape({known ? c.input(0).dim(0) : internal::kUnknown, columns}));
  c.set_output(2, count);
}

void hits_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  if (c.input(0).has_rank()) {
    c.merge_dim(c.input(0).dim(1), c.attr<std::int64_t>("num_true"), "num_true");
  }
  for (int i = 0; i < 3; ++i) c.set_output(i, internal::vector_of(internal::kUnknown));
}

OpDecl sampler(const char* name, const char* attrs, const char* doc) {
  return {.name = name,
          .inputs = "true_classes: int64",
          .outputs =
              "sampled_candidates: int64, true_expected_count: float, "
              "sampled_expected_count: float",
          .attrs = attrs,
          .shape = sampler_shape,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .keeps_state = true},
          .doc = doc};
}

#define TANDEM_COUNTS "num_true: int >= 1; num_sampled: int >= 1; unique: bool; "
#define TANDEM_RANGE TANDEM_COUNTS "range_max: int >= 1; seed: int = 0; seed2: int = 0"

const OpRegistration kUniform(sampler("UniformCandidateSampler", TANDEM_RANGE,
                                      "Classes drawn with equal probability, and how often they "
                                      "and the true ones are to be expected."));
const OpRegistration kLogUniform(sampler("LogUniformCandidateSampler", TANDEM_RANGE,
                                         "Classes drawn with probabilities as of words by "
                                         "frequency: log((k + 2) / (k + 1)) / log(range_max + "
                                         "1)."));
const OpRegistration kAll(sampler("AllCandidateSampler",
                                  TANDEM_COUNTS "seed: int = 0; seed2: int = 0",
                                  "All classes, each once."));
const OpRegistration kGiven(sampler(
    "FixedUnigramCandidateSampler",
    TANDEM_COUNTS
    "range_max: int >= 1; vocab_file: string = ''; distortion: float = 1.0; "
    "num_reserved_ids: int = 0; num_shards: int >= 1 = 1; shard: int >= 0 = 0; "
    "unigrams: list(float) = []; seed: int = 0; seed2: int = 0",
    "Classes drawn by given weights, each to the power of distortion: of unigrams, or the last "
    "column of a file."));
const OpRegistration kLearned(sampler("LearnedUnigramCandidateSampler", TANDEM_RANGE,
                                      "Classes drawn by how often they were among the true ones "
                                      "of the calls before."));
const OpRegistration kLearned2(sampler("ThreadUnsafeUnigramCandidateSampler", TANDEM_RANGE,
                                       "As LearnedUnigramCandidateSampler."));
const OpRegistration kHits{{.name = "ComputeAccidentalHits",
                            .inputs = "true_classes: int64, sampled_candidates: int64",
                            .outputs = "indices: int32, ids: int64, weights: float",
                            .attrs = "num_true: int; seed: int = 0; seed2: int = 0",
                            .shape = hits_shape,
                            .gradient = not_differentiable,
                            .doc = "Which true classes are among the sampled ones: row, place "
                                   "there, and the smallest float, to be added to logits."}};

}  // namespace
}  // namespace tandem
