#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/norm_ops.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/tensor.h"

/// Functions of tf.nn that are made of ops.
namespace tandem::nn {

// ---- Activations and losses. ----

/// relu of x and of -x, joined along `axis`.
TANDEM_EXPORT Tensor crelu(const Tensor& features, std::int64_t axis = -1);
/// exp(log_input) - targets · log_input, with Stirling's approximation of the rest if asked for.
TANDEM_EXPORT Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input,
                                      bool compute_full_loss = false);
/// sigmoid_cross_entropy_with_logits whose positive part counts pos_weight times.
TANDEM_EXPORT Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits,
                                                        const Tensor& pos_weight);
/// Σ of the (weighted) losses of examples, divided by global_batch_size (their number by default).
TANDEM_EXPORT Tensor compute_average_loss(const Tensor& per_example_loss,
                                          const Tensor& sample_weight = {},
                                          std::optional<std::int64_t> global_batch_size = {});
/// The sum of a regularization loss, divided by the number of replicas, which is one here.
TANDEM_EXPORT Tensor scale_regularization_loss(const Tensor& regularization_loss);

// ---- Moments. ----

struct SufficientStatistics {
  Tensor count, sum, sum_of_squares;
  Tensor shift;  ///< undefined if none was given
};
/// What moments of these axes are made of, about `shift`.
TANDEM_EXPORT SufficientStatistics sufficient_statistics(const Tensor& x,
                                                         const std::vector<std::int64_t>& axes,
                                                         const Tensor& shift = {},
                                                         bool keepdims = false);
TANDEM_EXPORT Moments normalize_moments(const Tensor& counts, const Tensor& mean_ss,
                                        const Tensor& variance_ss, const Tensor& shift = {});
TANDEM_EXPORT Moments weighted_moments(const Tensor& x, const std::vector<std::int64_t>& axes,
                                       const Tensor& frequency_weights, bool keepdims = false);
/// batch_normalization over the channels of images.
TANDEM_EXPORT Tensor batch_norm_with_global_normalization(const Tensor& input, const Tensor& mean,
                                                          const Tensor& variance,
                                                          const Tensor& beta, const Tensor& gamma,
                                                          double variance_epsilon,
                                                          bool scale_after_normalization);

// ---- Convolution and pooling of any rank. ----

/// One number for all spatial axes, or one for each.
class WindowSizes {
 public:
  WindowSizes(std::int64_t all) : sizes_{all} {}
  WindowSizes(int all) : sizes_{all} {}
  WindowSizes(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
  WindowSizes(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}
  /// So many of them; InvalidArgumentError if it is neither one nor that many.
  std::vector<std::int64_t> of(std::size_t axes) const;

 private:
  std::vector<std::int64_t> sizes_;
};

/// [batch, width, channels]; filters [width, in, out]; data_format "NWC" or "NCW".
TANDEM_EXPORT Tensor conv1d(const Tensor& input, const Tensor& filters, std::int64_t stride,
                            StringView padding, StringView data_format = "NWC",
                            std::int64_t dilations = 1);
/// filters [width, out, in].
TANDEM_EXPORT Tensor conv1d_transpose(const Tensor& input, const Tensor& filters,
                                      const IntList& output_shape, std::int64_t strides,
                                      StringView padding = "SAME", StringView data_format = "NWC");
/// conv1d, conv2d or conv3d by the rank of the input; channels last.
TANDEM_EXPORT Tensor convolution(const Tensor& input, const Tensor& filters,
                                 const WindowSizes& strides = 1, StringView padding = "VALID",
                                 const WindowSizes& dilations = 1);
TANDEM_EXPORT Tensor conv_transpose(const Tensor& input, const Tensor& filters,
                                    const IntList& output_shape, const WindowSizes& strides,
                                    StringView padding = "SAME");
/// conv2d with dilated filters.
TANDEM_EXPORT Tensor atrous_conv2d(const Tensor& value, const Tensor& filters, std::int64_t rate,
                                   StringView padding);
TANDEM_EXPORT Tensor atrous_conv2d_transpose(const Tensor& value, const Tensor& filters,
                                             const IntList& output_shape, std::int64_t rate,
                                             StringView padding);
TANDEM_EXPORT Tensor depthwise_conv2d_backprop_input(
    const IntList& input_sizes, const Tensor& filter, const Tensor& out_backprop,
    const std::vector<std::int64_t>& strides, StringView padding, StringView data_format = "NHWC",
    const std::vector<std::int64_t>& dilations = {1, 1, 1, 1});
TANDEM_EXPORT Tensor depthwise_conv2d_backprop_filter(
    const Tensor& input, const IntList& filter_sizes, const Tensor& out_backprop,
    const std::vector<std::int64_t>& strides, StringView padding, StringView data_format = "NHWC",
    const std::vector<std::int64_t>& dilations = {1, 1, 1, 1});

/// By the rank of the input, 3 to 5; channels last.
TANDEM_EXPORT Tensor max_pool(const Tensor& input, const WindowSizes& ksize,
                              const WindowSizes& strides, StringView padding);
TANDEM_EXPORT Tensor avg_pool(const Tensor& input, const WindowSizes& ksize,
                              const WindowSizes& strides, StringView padding);
TANDEM_EXPORT Tensor max_pool1d(const Tensor& input, std::int64_t ksize, std::int64_t strides,
                                StringView padding);
TANDEM_EXPORT Tensor avg_pool1d(const Tensor& input, std::int64_t ksize, std::int64_t strides,
                                StringView padding);
/// pooling_type "MAX" or "AVG".
TANDEM_EXPORT Tensor pool(const Tensor& input, const WindowSizes& window_shape,
                          StringView pooling_type, const WindowSizes& strides = 1,
                          StringView padding = "VALID");
/// The largest values, and where in each flattened image they are.
TANDEM_EXPORT std::pair<Tensor, Tensor> max_pool_with_argmax(const Tensor& input, Size2D ksize,
                                                             Size2D strides, StringView padding,
                                                             DType output_dtype = int64,
                                                             bool include_batch_in_index = false);
struct FractionalPool {
  Tensor output;
  Tensor row_pooling_sequence, col_pooling_sequence;
};
TANDEM_EXPORT FractionalPool fractional_max_pool(const Tensor& value,
                                                 const std::vector<float>& pooling_ratio,
                                                 bool pseudo_random = false,
                                                 bool overlapping = false, std::int64_t seed = 0);
TANDEM_EXPORT FractionalPool fractional_avg_pool(const Tensor& value,
                                                 const std::vector<float>& pooling_ratio,
                                                 bool pseudo_random = false,
                                                 bool overlapping = false, std::int64_t seed = 0);
/// Grey-scale morphology; strides and dilations of four numbers; padding "SAME" or "VALID".
TANDEM_EXPORT Tensor dilation2d(const Tensor& input, const Tensor& filters,
                                const std::vector<std::int64_t>& strides, StringView padding,
                                const std::vector<std::int64_t>& dilations = {1, 1, 1, 1});
TANDEM_EXPORT Tensor erosion2d(const Tensor& value, const Tensor& filters,
                               const std::vector<std::int64_t>& strides, StringView padding,
                               const std::vector<std::int64_t>& dilations = {1, 1, 1, 1});

// ---- Embeddings and candidate sampling. ----

/// Sums ("sum"), means ("mean") or sums over √n ("sqrtn") of the rows that each row of `sp_ids`
/// names, with weights at the same places if given.
TANDEM_EXPORT Tensor embedding_lookup_sparse(const Tensor& params,
                                             const sparse::SparseTensor& sp_ids,
                                             const sparse::SparseTensor& sp_weights = {},
                                             StringView combiner = "mean");
/// Rows without ids have those of default_id, or zeros.
TANDEM_EXPORT Tensor safe_embedding_lookup_sparse(const Tensor& params,
                                                  const sparse::SparseTensor& sp_ids,
                                                  const sparse::SparseTensor& sp_weights = {},
                                                  StringView combiner = "mean",
                                                  std::optional<std::int64_t> default_id = {});
struct SampledCandidates {
  Tensor sampled_candidates;      ///< int64, [num_sampled]
  Tensor true_expected_count;     ///< float, [batch, num_true]
  Tensor sampled_expected_count;  ///< float, [num_sampled]
};
TANDEM_EXPORT SampledCandidates all_candidate_sampler(const Tensor& true_classes,
                                                      std::int64_t num_true,
                                                      std::int64_t num_sampled, bool unique,
                                                      std::optional<std::int64_t> seed = {});
TANDEM_EXPORT SampledCandidates uniform_candidate_sampler(const Tensor& true_classes,
                                                          std::int64_t num_true,
                                                          std::int64_t num_sampled, bool unique,
                                                          std::int64_t range_max,
                                                          std::optional<std::int64_t> seed = {});
TANDEM_EXPORT SampledCandidates log_uniform_candidate_sampler(
    const Tensor& true_classes, std::int64_t num_true, std::int64_t num_sampled, bool unique,
    std::int64_t range_max, std::optional<std::int64_t> seed = {});
TANDEM_EXPORT SampledCandidates learned_unigram_candidate_sampler(
    const Tensor& true_classes, std::int64_t num_true, std::int64_t num_sampled, bool unique,
    std::int64_t range_max, std::optional<std::int64_t> seed = {});
/// The classes' probabilities are proportional to `unigrams` to the power of `distortion`.
TANDEM_EXPORT SampledCandidates fixed_unigram_candidate_sampler(
    const Tensor& true_classes, std::int64_t num_true, std::int64_t num_sampled, bool unique,
    std::int64_t range_max, const std::vector<float>& unigrams, float distortion = 1,
    std::optional<std::int64_t> seed = {});
struct AccidentalHits {
  Tensor indices, ids, weights;
};
TANDEM_EXPORT AccidentalHits compute_accidental_hits(const Tensor& true_classes,
                                                     const Tensor& sampled_candidates,
                                                     std::int64_t num_true,
                                                     std::optional<std::int64_t> seed = {});
/// The loss of `num_classes` classes, estimated from the true ones and sampled ones: of the softmax
/// over them, or (nce_loss) of a logistic regression for each. weights [num_classes, dim], biases
/// [num_classes], labels int64 [batch, num_true], inputs [batch, dim]; the result is [batch].
TANDEM_EXPORT Tensor sampled_softmax_loss(const Tensor& weights, const Tensor& biases,
                                          const Tensor& labels, const Tensor& inputs,
                                          std::int64_t num_sampled, std::int64_t num_classes,
                                          std::int64_t num_true = 1,
                                          const std::optional<SampledCandidates>& sampled = {},
                                          bool remove_accidental_hits = true,
                                          std::optional<std::int64_t> seed = {});
TANDEM_EXPORT Tensor nce_loss(const Tensor& weights, const Tensor& biases, const Tensor& labels,
                              const Tensor& inputs, std::int64_t num_sampled,
                              std::int64_t num_classes, std::int64_t num_true = 1,
                              const std::optional<SampledCandidates>& sampled = {},
                              bool remove_accidental_hits = false,
                              std::optional<std::int64_t> seed = {});

// ---- Sequences. ----

/// Runs of equal labels become one: the labels [batch, longest], and their numbers.
TANDEM_EXPORT std::pair<Tensor, Tensor> collapse_repeated(const Tensor& labels,
                                                          const Tensor& seq_length);
/// The distinct labels of each row, filled up with 0, and for each label where it is among them.
TANDEM_EXPORT std::pair<Tensor, Tensor> ctc_unique_labels(const Tensor& labels);

}  // namespace tandem::nn
