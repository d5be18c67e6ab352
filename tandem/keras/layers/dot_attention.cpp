#include "tandem/keras/layers/dot_attention.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

// Everything but the scores.
class AttentionBase : public LayerImpl {
 public:
  AttentionBase(const std::string& class_name, const LayerSettings& settings, double dropout,
                std::optional<std::int64_t> seed)
      : LayerImpl(class_name, settings), dropout_(dropout), seed_(seed) {
    internal::require_rate(class_name, "dropout", dropout);
    require_rank(3);
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    require_inputs(inputs.size());
    const Tensor& value = inputs[1];
    Tensor scores = this->scores(inputs[0], inputs.size() > 2 ? inputs[2] : value);
    Tensor mask = how.mask_of(1);
    if (mask.defined()) mask = expand_dims(cast(mask, DType::kBool), 1);
    if (how.use_causal_mask) {
      const std::vector<Tensor> sizes = unstack(shape(scores), 3);
      const Tensor earlier = expand_dims(range(sizes[1]), 1) >= expand_dims(range(sizes[2]), 0);
      mask = mask.defined() ? logical_and(mask, earlier) : earlier;
    }
    if (mask.defined()) {
      const double least = scores.dtype() == DType::kHalf ? 65504.0 : 1e9;
      scores = where(mask, scores, scores - least);
    }
    const Tensor probabilities = nn::softmax(scores);
    const bool drop = dropout_ > 0 && how.is_training();
    const Tensor weights =
        drop ? nn::dropout(probabilities, dropout_, {.seed = seed_}) : probabilities;
    Tensor result = matmul(weights, value);
    if (const Tensor queries = how.mask_of(0); queries.defined()) {
      const Tensor keep = expand_dims(cast(queries, DType::kBool), -1);
      result = where(keep, result, zeros_like(result));
    }
    if (how.return_attention_scores) return {result, weights};
    return {result};
  }

  std::vector<Tensor> compute_masks(std::span<const Tensor>,
                                    std::span<const Tensor> masks) const override {
    if (masks.empty()) return {};
    return {masks[0]};
  }

 protected:
  virtual Tensor scores(const Tensor& query, const Tensor& key) const = 0;

  // [batch, t, s, d]: each query with each key.
  static Tensor sums(const Tensor& query, const Tensor& key) {
    return math::tanh(expand_dims(query, 2) + expand_dims(key, 1));
  }

  void require_inputs(std::size_t count) const {
    if (count != 2 && count != 3) {
      throw InvalidArgumentError(
          cat(prefix(), "accepts inputs list of length 2 or 3, namely ",
              "{query, value} or {query, value, key}. Received length: ", count, "."));
    }
  }

  double dropout_;
  std::optional<std::int64_t> seed_;
};

class AttentionImpl final : public AttentionBase {
 public:
  explicit AttentionImpl(const AttentionOptions& o)
      : AttentionBase("Attention", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype},
                      o.dropout, o.seed),
        options_(o) {
    if (o.score_mode != "dot" && o.score_mode != "concat") {
      throw InvalidArgumentError(
          cat("Attention: Invalid value for argument score_mode. Expected one of 'dot', 'concat'. ",
              "Received: score_mode='", o.score_mode, "'."));
    }
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    require_inputs(inputs.size());
    if (options_.use_scale) scale_ = add_weight("scale", {}, {.initializer = "ones"});
    if (options_.score_mode == "concat") {
      concat_ = add_weight("concat_score_weight", {}, {.initializer = "ones"});
    }
  }

  Tensor scores(const Tensor& query, const Tensor& key) const override {
    if (options_.score_mode == "dot") {
      const Tensor dot = matmul(query, key, {.transpose_b = true});
      return options_.use_scale ? dot * scale_ : dot;
    }
    const Tensor both = options_.use_scale
                            ? math::tanh((expand_dims(query, 2) + expand_dims(key, 1)) * scale_)
                            : sums(query, key);
    return reduce_sum(both, {-1}) * concat_;
  }

 private:
  AttentionOptions options_;
  Variable scale_;
  Variable concat_;
};

class AdditiveAttentionImpl final : public AttentionBase {
 public:
  explicit AdditiveAttentionImpl(const AdditiveAttentionOptions& o)
      : AttentionBase("AdditiveAttention",
                      {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}, o.dropout,
                      o.seed),
        use_scale_(o.use_scale) {}

  void build_many(const std::vector<PartialShape>& inputs) override {
    require_inputs(inputs.size());
    if (use_scale_) scale_ = add_weight("scale", {known_size(inputs[0], -1)});
  }

  Tensor scores(const Tensor& query, const Tensor& key) const override {
    const Tensor both = sums(query, key);
    return reduce_sum(use_scale_ ? both * scale_ : both, {-1});
  }

 private:
  bool use_scale_;
  Variable scale_;
};

constexpr auto kAttention = [](auto& a, auto& o) {
  a("use_scale", o.use_scale);
  a("score_mode", o.score_mode);
  a("dropout", o.dropout);
  a("seed", o.seed);
};
constexpr auto kAdditive = [](auto& a, auto& o) {
  a("use_scale", o.use_scale);
  a("dropout", o.dropout);
  a("seed", o.seed);
  a.ignore("score_mode");
};

}  // namespace

Attention::Attention(const AttentionOptions& options)
    : Layer(internal::with_arguments(std::make_shared<AttentionImpl>(options), kAttention,
                                     options)) {}
AdditiveAttention::AdditiveAttention(const AdditiveAttentionOptions& options)
    : Layer(internal::with_arguments(std::make_shared<AdditiveAttentionImpl>(options), kAdditive,
                                     options)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Attention, AttentionOptions>("Attention", kAttention),
    internal::register_layer_class<AdditiveAttention, AdditiveAttentionOptions>("AdditiveAttention",
                                                                                kAdditive)};
}  // namespace

}  // namespace tandem::keras
