#include "tandem/ops/nn_functions.h"

#include <cmath>
#include <numbers>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/internal/op_seeds.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/sparse_segment_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::nn {

Tensor crelu(const Tensor& features, std::int64_t axis) {
  return relu(concat({features, -features}, axis));
}

Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input, bool compute_full_loss) {
  Tensor loss = exp(log_input) - log_input * targets;
  if (!compute_full_loss) return loss;
  const Tensor stirling =
      targets * math::log(targets) - targets + 0.5 * math::log(targets * (2 * std::numbers::pi));
  // For targets of at most 1 the logarithm of the factorial is 0.
  return loss + where((targets >= 0) && (targets <= 1), zeros_like(targets), stirling);
}

Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits,
                                          const Tensor& pos_weight) {
  const Tensor weight = 1 + (pos_weight - 1) * labels;
  return (1 - labels) * logits + weight * (math::log1p(exp(-abs(logits))) + relu(-logits));
}

Tensor compute_average_loss(const Tensor& per_example_loss, const Tensor& sample_weight,
                            std::optional<std::int64_t> global_batch_size) {
  Tensor losses = per_example_loss;
  if (sample_weight.defined()) {
    Tensor weights = cast(sample_weight, losses.dtype());
    while (weights.rank() < losses.rank()) weights = expand_dims(weights, -1);
    losses = losses * weights;
  }
  const Tensor count = global_batch_size ? cast(Tensor(*global_batch_size), losses.dtype())
                                         : cast(shape(losses)[0], losses.dtype());
  return reduce_sum(losses) / count;
}

Tensor scale_regularization_loss(const Tensor& loss) { return reduce_sum(loss); }

SufficientStatistics sufficient_statistics(const Tensor& x, const std::vector<std::int64_t>& axes,
                                           const Tensor& shift, bool keepdims) {
  Tensor count = Tensor(1.0f);
  const Tensor sizes = shape(x);
  for (const std::int64_t axis : axes)
    count = count * cast(sizes[axis < 0 ? axis + x.rank() : axis], float32);
  count = cast(count, x.dtype());
  const Tensor centred = shift.defined() ? x - shift : x;
  const Tensor squares = shift.defined() ? math::squared_difference(x, shift) : square(x);
  return {count, reduce_sum(centred, axes, keepdims), reduce_sum(squares, axes, keepdims), shift};
}

Moments normalize_moments(const Tensor& counts, const Tensor& mean_ss, const Tensor& variance_ss,
                          const Tensor& shift) {
  const Tensor share = math::reciprocal(counts);
  const Tensor shifted = mean_ss * share;
  const Tensor mean = shift.defined() ? shifted + shift : shifted;
  return {mean, variance_ss * share - square(shifted)};
}

Moments weighted_moments(const Tensor& x, const std::vector<std::int64_t>& axes,
                         const Tensor& frequency_weights, bool keepdims) {
  const Tensor weights = cast(frequency_weights, x.dtype());
  const Tensor wide = weights + zeros_like(x);
  const Tensor sum_of_weights = reduce_sum(wide, axes, true);
  const Tensor share = math::reciprocal(sum_of_weights);
  const Tensor mean = reduce_sum(wide * x, axes, true) * share;
  const Tensor variance = reduce_sum(wide * math::squared_difference(x, mean), axes, true) * share;
  if (keepdims) return {mean, variance};
  return {squeeze(mean, axes), squeeze(variance, axes)};
}

Tensor batch_norm_with_global_normalization(const Tensor& input, const Tensor& mean,
                                            const Tensor& variance, const Tensor& beta,
                                            const Tensor& gamma, double variance_epsilon,
                                            bool scale_after_normalization) {
  return batch_normalization(input, mean, variance, beta,
                             scale_after_normalization ? gamma : Tensor(), variance_epsilon);
}

// ---- Embeddings ----

namespace {

Tensor int_of(const Tensor& x) { return x.dtype() == int64 ? cast(x, int32) : x; }

}  // namespace

Tensor embedding_lookup_sparse(const Tensor& params, const sparse::SparseTensor& sp_ids,
                               const sparse::SparseTensor& sp_weights, StringView combiner) {
  if (combiner != "mean" && combiner != "sum" && combiner != "sqrtn") {
    throw InvalidArgumentError(
        cat("td::nn::embedding_lookup_sparse: combiner must be one of 'mean', 'sqrtn' or 'sum', "
            "got '",
            combiner, "'."));
  }
  const Tensor rows = int_of(sp_ids.indices[{ellipsis, 0}]);
  if (!sp_weights.values.defined()) {
    if (combiner == "sum") return sparse::segment_sum(params, sp_ids.values, rows);
    if (combiner == "mean") return sparse::segment_mean(params, sp_ids.values, rows);
    return sparse::segment_sqrt_n(params, sp_ids.values, rows);
  }
  Tensor weights = cast(sp_weights.values, params.dtype());
  for (int i = 1; i < params.rank(); ++i) weights = expand_dims(weights, -1);
  const Tensor sums = math::segment_sum(gather(params, sp_ids.values) * weights, rows);
  if (combiner == "sum") return sums;
  if (combiner == "mean") return math::divide_no_nan(sums, math::segment_sum(weights, rows));
  return math::divide_no_nan(sums, sqrt(math::segment_sum(square(weights), rows)));
}

Tensor safe_embedding_lookup_sparse(const Tensor& params, const sparse::SparseTensor& sp_ids,
                                    const sparse::SparseTensor& sp_weights, StringView combiner,
                                    std::optional<std::int64_t> default_id) {
  // Ids below 0, and weights that are not above it, do not count.
  Tensor valid = sp_ids.values >= 0;
  const bool weighted = sp_weights.values.defined();
  if (weighted && combiner != "sum") valid = valid && (sp_weights.values > 0);
  const Tensor indices = boolean_mask(sp_ids.indices, valid);
  const sparse::SparseTensor kept{indices, boolean_mask(sp_ids.values, valid), sp_ids.dense_shape};
  const auto filled =
      sparse::fill_empty_rows(kept, cast(Tensor(default_id.value_or(0)), sp_ids.values.dtype()));
  sparse::SparseTensor weights;
  if (weighted) {
    weights = sparse::fill_empty_rows(
                  {indices, boolean_mask(sp_weights.values, valid), sp_weights.dense_shape},
                  cast(Tensor(1.0f), sp_weights.values.dtype()))
                  .filled;
  }
  const Tensor result = embedding_lookup_sparse(params, filled.filled, weights, combiner);
  if (default_id) return result;
  Tensor empty = filled.empty_row_indicator;
  for (int i = 1; i < result.rank(); ++i) empty = expand_dims(empty, -1);
  return where(empty, zeros_like(result), result);
}

// ---- Candidate sampling ----

namespace {

SampledCandidates sample(const char* op, const Tensor& true_classes, std::int64_t num_true,
                         std::int64_t num_sampled, bool unique, std::optional<std::int64_t> seed,
                         AttrMap more) {
  AttrMap attrs = internal::op_seeds(seed);
  attrs.set("num_true", num_true);
  attrs.set("num_sampled", num_sampled);
  attrs.set("unique", unique);
  for (const auto& [name, value] : more) attrs.set(name, value);
  auto out = raw_op(op, {true_classes}, attrs);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

}  // namespace

SampledCandidates all_candidate_sampler(const Tensor& true_classes, std::int64_t num_true,
                                        std::int64_t num_sampled, bool unique,
                                        std::optional<std::int64_t> seed) {
  return sample("AllCandidateSampler", true_classes, num_true, num_sampled, unique, seed, {});
}
SampledCandidates uniform_candidate_sampler(const Tensor& true_classes, std::int64_t num_true,
                                            std::int64_t num_sampled, bool unique,
                                            std::int64_t range_max,
                                            std::optional<std::int64_t> seed) {
  return sample("UniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed,
                {{"range_max", range_max}});
}
SampledCandidates log_uniform_candidate_sampler(const Tensor& true_classes, std::int64_t num_true,
                                                std::int64_t num_sampled, bool unique,
                                                std::int64_t range_max,
                                                std::optional<std::int64_t> seed) {
  return sample("LogUniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed,
                {{"range_max", range_max}});
}
SampledCandidates learned_unigram_candidate_sampler(const Tensor& true_classes,
                                                    std::int64_t num_true, std::int64_t num_sampled,
                                                    bool unique, std::int64_t range_max,
                                                    std::optional<std::int64_t> seed) {
  return sample("LearnedUnigramCandidateSampler", true_classes, num_true, num_sampled, unique, seed,
                {{"range_max", range_max}});
}
SampledCandidates fixed_unigram_candidate_sampler(const Tensor& true_classes, std::int64_t num_true,
                                                  std::int64_t num_sampled, bool unique,
                                                  std::int64_t range_max,
                                                  const std::vector<float>& unigrams,
                                                  float distortion,
                                                  std::optional<std::int64_t> seed) {
  return sample("FixedUnigramCandidateSampler", true_classes, num_true, num_sampled, unique, seed,
                {{"range_max", range_max}, {"unigrams", unigrams}, {"distortion", distortion}});
}

AccidentalHits compute_accidental_hits(const Tensor& true_classes, const Tensor& sampled,
                                       std::int64_t num_true, std::optional<std::int64_t> seed) {
  AttrMap attrs = internal::op_seeds(seed);
  attrs.set("num_true", num_true);
  auto out = raw_op("ComputeAccidentalHits", {true_classes, sampled}, attrs);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

namespace {

struct SampledLogits {
  Tensor logits, labels;
};

// Logits and labels of the true classes, then of the sampled ones.
SampledLogits sampled_logits(const Tensor& weights, const Tensor& biases,
                             const Tensor& given_labels, const Tensor& inputs,
                             std::int64_t num_sampled, std::int64_t num_classes,
                             std::int64_t num_true, const std::optional<SampledCandidates>& given,
                             bool remove_hits, std::optional<std::int64_t> seed) {
  const Tensor labels = cast(given_labels, int64);
  const SampledCandidates sampled =
      given ? *given
            : log_uniform_candidate_sampler(labels, num_true, num_sampled, true, num_classes, seed);
  const Tensor candidates = stop_gradient(sampled.sampled_candidates);
  const Tensor flat = reshape(labels, {-1});
  const Tensor all = concat({flat, candidates}, 0);
  const Tensor all_weights = gather(weights, all), all_biases = gather(biases, all);
  const Tensor split_at = shape(flat);
  const std::int64_t dim = inputs.dim(-1);
  const Tensor true_w = slice(all_weights, {0, 0}, IntList(concat({split_at, Tensor{-1}}, 0)));
  const Tensor sampled_w = slice(all_weights, IntList(concat({split_at, Tensor{0}}, 0)), {-1, -1});
  const Tensor true_b = slice(all_biases, {0}, IntList(split_at));
  const Tensor sampled_b = slice(all_biases, IntList(split_at), {-1});
  const Tensor sampled_part = matmul(inputs, sampled_w, {.transpose_b = true}) + sampled_b -
                              math::log(stop_gradient(sampled.sampled_expected_count));
  const Tensor dots = reduce_sum(expand_dims(inputs, 1) * reshape(true_w, {-1, num_true, dim}), 2);
  const Tensor true_part = dots + reshape(true_b, {-1, num_true}) -
                           math::log(stop_gradient(sampled.true_expected_count));
  Tensor sampled_logits = sampled_part;
  if (remove_hits) {
    const AccidentalHits hits = compute_accidental_hits(labels, candidates, num_true, seed);
    const Tensor places = stack({cast(hits.indices, int64), hits.ids}, 1);
    sampled_logits =
        tensor_scatter_nd_add(sampled_logits, places, cast(hits.weights, sampled_logits.dtype()));
  }
  const Tensor logits = concat({true_part, sampled_logits}, 1);
  const Tensor truth =
      concat({ones_like(true_part) / static_cast<double>(num_true), zeros_like(sampled_logits)}, 1);
  return {logits, truth};
}

}  // namespace

Tensor sampled_softmax_loss(const Tensor& weights, const Tensor& biases, const Tensor& labels,
                            const Tensor& inputs, std::int64_t num_sampled,
                            std::int64_t num_classes, std::int64_t num_true,
                            const std::optional<SampledCandidates>& sampled,
                            bool remove_accidental_hits, std::optional<std::int64_t> seed) {
  const SampledLogits s = sampled_logits(weights, biases, labels, inputs, num_sampled, num_classes,
                                         num_true, sampled, remove_accidental_hits, seed);
  return softmax_cross_entropy_with_logits(stop_gradient(s.labels), s.logits);
}

Tensor nce_loss(const Tensor& weights, const Tensor& biases, const Tensor& labels,
                const Tensor& inputs, std::int64_t num_sampled, std::int64_t num_classes,
                std::int64_t num_true, const std::optional<SampledCandidates>& sampled,
                bool remove_accidental_hits, std::optional<std::int64_t> seed) {
  const SampledLogits s = sampled_logits(weights, biases, labels, inputs, num_sampled, num_classes,
                                         num_true, sampled, remove_accidental_hits, seed);
  return reduce_sum(sigmoid_cross_entropy_with_logits(s.labels, s.logits), 1);
}

// ---- Sequences ----

std::pair<Tensor, Tensor> collapse_repeated(const Tensor& labels, const Tensor& seq_length) {
  const Tensor first = ones_like(labels[{ellipsis, Slice(none, 1)}], boolean);
  const Tensor changed = labels[{ellipsis, Slice(1, none)}] != labels[{ellipsis, Slice(none, -1)}];
  const Tensor width = shape(labels)[-1];
  const Tensor within = range(width) < cast(expand_dims(seq_length, 1), int32);
  const Tensor kept = concat({first, changed}, 1) && within;
  const Tensor lengths = reduce_sum(cast(kept, int32), 1);
  const Tensor longest = reduce_max(lengths);
  // Each kept label goes to the place that counts those kept before it.
  const Tensor places = cumsum(cast(kept, int32), 1) - 1;
  const Tensor rows = broadcast_to(expand_dims(range(shape(labels)[0]), 1), IntList(shape(labels)));
  const Tensor target = boolean_mask(stack({rows, places}, -1), kept);
  const Tensor result =
      scatter_nd(target, boolean_mask(labels, kept), IntList(stack({shape(labels)[0], longest})));
  return {result, cast(lengths, seq_length.dtype())};
}

std::pair<Tensor, Tensor> ctc_unique_labels(const Tensor& labels) {
  const std::int64_t rows = labels.dim(0);
  if (rows < 0) {
    throw InvalidArgumentError("td::nn::ctc_unique_labels: the batch size must be known.");
  }
  const Tensor width = shape(labels)[1];
  std::vector<Tensor> distinct, places;
  for (std::int64_t row = 0; row < rows; ++row) {
    const UniqueResult u = unique(labels[row]);
    const Tensor missing = width - size(u.y);
    distinct.push_back(pad(u.y, stack({stack({Tensor(0), missing})})));
    places.push_back(u.idx);
  }
  return {stack(distinct), stack(places)};
}

}  // namespace tandem::nn
