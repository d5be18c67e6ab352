#include "tandem/keras/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/internal/sizes_of.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class MultiHeadAttentionImpl final : public LayerImpl {
 public:
  MultiHeadAttentionImpl(std::int64_t num_heads, std::int64_t key_dim,
                         const MultiHeadAttentionOptions& o)
      : LayerImpl("MultiHeadAttention",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        heads_(num_heads),
        key_dim_(key_dim),
        value_dim_(o.value_dim.value_or(key_dim)),
        options_(o) {
    internal::require_positive("MultiHeadAttention", "num_heads", heads_);
    internal::require_positive("MultiHeadAttention", "key_dim", key_dim_);
    internal::require_positive("MultiHeadAttention", "value_dim", value_dim_);
    if (o.output_dim) internal::require_positive("MultiHeadAttention", "output_dim", *o.output_dim);
    internal::require_rate("MultiHeadAttention", "dropout", o.dropout);
    if (o.sliding_window)
      internal::require_positive("MultiHeadAttention", "sliding_window", *o.sliding_window);
    pass_masks();
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    require_inputs(inputs.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(3, inputs.size()); ++i) {
      if (inputs[i].rank() != 3) {
        throw InvalidArgumentError(
            cat(prefix(),
                "query, value and key must have rank 3, [batch, positions, features]. "
                "Received shape ",
                internal::shape_text(inputs[i]), "."));
      }
    }
    const std::int64_t query = known_size(inputs[0], -1);
    const std::int64_t value = known_size(inputs[1], -1);
    const std::int64_t key = inputs.size() > 2 ? known_size(inputs[2], -1) : value;
    const std::int64_t output = options_.output_dim.value_or(query);
    query_ = projection("query", {query, heads_, key_dim_}, {heads_, key_dim_});
    key_ = projection("key", {key, heads_, key_dim_}, {heads_, key_dim_});
    if (options_.use_gate)
      gate_ = projection("gate", {query, heads_, value_dim_}, {heads_, value_dim_});
    value_ = projection("value", {value, heads_, value_dim_}, {heads_, value_dim_});
    output_ = projection("attention_output", {heads_, value_dim_, output}, {output});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    require_inputs(inputs.size());
    const Tensor& value = inputs[1];
    const Tensor& key = inputs.size() > 2 ? inputs[2] : value;
    const Tensor q =
        split_heads(inputs[0], query_, key_dim_) * (1 / std::sqrt(static_cast<double>(key_dim_)));
    const Tensor k = split_heads(key, key_, key_dim_);
    const Tensor v = split_heads(value, value_, value_dim_);
    Tensor scores = matmul(q, k, {.transpose_b = true});  // [batch, heads, t, s]
    const Tensor mask = combined_mask(inputs, scores, how);
    const bool keeps_scores = options_.dropout > 0 || how.return_attention_scores;
    if (mask.defined()) scores = where(mask, scores, least(scores.dtype(), keeps_scores));
    Tensor probabilities = nn::softmax(std::move(scores));
    // Like Keras: positions that look at none get zeros here, and equal parts of all otherwise.
    if (mask.defined() && keeps_scores)
      probabilities = where(mask, probabilities, zeros_like(probabilities));
    Tensor weights = probabilities;
    if (options_.dropout > 0 && how.is_training())
      weights = nn::dropout(probabilities, options_.dropout, {.seed = options_.seed});
    Tensor found = matmul(weights, v);
    if (options_.use_gate)
      found = found * activations::sigmoid(split_heads(inputs[0], gate_, value_dim_));
    const Tensor result = join_heads(found, inputs[0]);
    if (how.return_attention_scores) return {result, probabilities};
    return {result};
  }
  InputForm input_form() const override { return InputForm::kSeparate; }

 private:
  struct Projection {
    Variable kernel;
    Variable bias;
  };

  void require_inputs(std::size_t count) const {
    if (count < 2 || count > 4) {
      throw InvalidArgumentError(
          cat(prefix(), "takes query and value, then perhaps key and attention mask. Received ",
              count, " input(s): for self-attention give the same one twice, (x, x)."));
    }
  }

  Projection projection(const std::string& name, const Shape& kernel, const Shape& bias) {
    // The attribute that holds the layer in Keras.
    const std::string saved_as =
        name == "attention_output" ? "_output_dense" : cat("_", name, "_dense");
    Projection p;
    p.kernel = add_weight(name + "/kernel", kernel,
                          {.initializer = options_.kernel_initializer,
                           .regularizer = options_.kernel_regularizer,
                           .constraint = options_.kernel_constraint,
                           .saved_as = saved_as + "/_kernel"});
    if (options_.use_bias) {
      p.bias = add_weight(name + "/bias", bias,
                          {.initializer = options_.bias_initializer,
                           .regularizer = options_.bias_regularizer,
                           .constraint = options_.bias_constraint,
                           .saved_as = saved_as + "/bias"});
    }
    return p;
  }

  // [batch, t, features] as [batch, heads, t, size].
  Tensor split_heads(const Tensor& x, const Projection& p, std::int64_t size) const {
    const Tensor kernel = reshape(p.kernel, {-1, heads_ * size});
    Tensor y = matmul(reshape(x, {-1, x.dim(-1)}), kernel);
    if (options_.use_bias) y = nn::bias_add(std::move(y), reshape(p.bias, {heads_ * size}));
    return transpose(reshape(std::move(y), leading(x, {heads_, size})), {0, 2, 1, 3});
  }

  Tensor join_heads(const Tensor& x, const Tensor& query) const {
    const std::int64_t size = heads_ * value_dim_;
    const std::int64_t out = output_.kernel.shape().dim(2);
    Tensor y = reshape(transpose(x, {0, 2, 1, 3}), {-1, size});
    y = matmul(std::move(y), reshape(output_.kernel, {size, out}));
    if (options_.use_bias) y = nn::bias_add(std::move(y), output_.bias);
    return reshape(std::move(y), leading(query, {out}));
  }

  // The batch and position sizes of x, then `rest`.
  static IntList leading(const Tensor& x, std::vector<std::int64_t> rest) {
    if (x.partial_shape().is_fully_known()) {
      rest.insert(rest.begin(), {x.dim(0), x.dim(1)});
      return IntList(std::move(rest));
    }
    std::vector<Tensor> sizes = internal::scalar_sizes(x);
    sizes.resize(2);
    for (const std::int64_t size : rest) sizes.emplace_back(static_cast<int>(size));
    return IntList(stack(sizes));
  }

  static Tensor least(DType dtype, bool keeps_scores) {
    double value = dtype == DType::kHalf ? -3e4 : -1e9;
    if (!keeps_scores && dtype != DType::kHalf) value = -2.38e38;
    return constant(Tensor(value), dtype);
  }

  static Tensor both(const Tensor& a, const Tensor& b) {
    if (!a.defined()) return b;
    return b.defined() ? logical_and(a, b) : a;
  }

  // What may be broadcast to [batch, heads, t, s]; undefined if every position looks at all.
  Tensor combined_mask(std::span<const Tensor> inputs, const Tensor& scores,
                       const CallOptions& how) const {
    Tensor mask;
    if (inputs.size() > 3) {
      mask = cast(inputs[3], DType::kBool);
      if (mask.rank() == 2) mask = expand_dims(mask, 0);
      if (mask.rank() == 3) mask = expand_dims(mask, 1);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(3, inputs.size()); ++i) {
      const Tensor steps = how.mask_of(i);
      if (!steps.defined()) continue;
      const Tensor wide = expand_dims(cast(steps, DType::kBool), 1);
      mask = both(mask, i == 0 ? expand_dims(wide, -1) : expand_dims(wide, 1));
    }
    if (!how.use_causal_mask && !options_.sliding_window) return mask;
    const std::vector<Tensor> sizes = unstack(shape(scores), 4);
    const Tensor rows = expand_dims(range(sizes[2]), 1);
    const Tensor columns = expand_dims(range(sizes[3]), 0);
    if (how.use_causal_mask) mask = both(mask, rows >= columns);
    if (options_.sliding_window) {
      const auto window =
          static_cast<int>(std::min<std::int64_t>(*options_.sliding_window, 1 << 30));
      mask = both(mask, math::abs(rows - columns) < window);
    }
    return mask;
  }

  std::int64_t heads_;
  std::int64_t key_dim_;
  std::int64_t value_dim_;
  MultiHeadAttentionOptions options_;
  Projection query_;
  Projection key_;
  Projection value_;
  Projection gate_;
  Projection output_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& num_heads, auto& key_dim) {
  a("num_heads", num_heads);
  a("key_dim", key_dim);
  a("value_dim", o.value_dim);
  a("dropout", o.dropout);
  a("use_bias", o.use_bias);
  a("use_gate", o.use_gate);
  a("output_shape", o.output_dim);
  a("sliding_window", o.sliding_window);
  a("kernel_initializer", o.kernel_initializer);
  a("bias_initializer", o.bias_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("bias_regularizer", o.bias_regularizer);
  a("bias_constraint", o.bias_constraint);
  a("seed", o.seed);
  a.ignore("attention_axes");  // inputs of rank 3 have but one
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<MultiHeadAttentionImpl>(num_heads, key_dim, options), kArguments,
          options, num_heads, key_dim)) {}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& value,
                                      const CallOptions& options) const {
  return outputs(std::vector<Tensor>{query, value}, options).front();
}
KerasTensor MultiHeadAttention::operator()(const KerasTensor& query, const KerasTensor& value,
                                           const CallOptions& options) const {
  return outputs(std::vector<KerasTensor>{query, value}, options).front();
}

namespace {
const bool kRegistered =
    internal::register_layer_class<MultiHeadAttention, MultiHeadAttentionOptions, std::int64_t,
                                   std::int64_t>("MultiHeadAttention", kArguments);
}  // namespace

}  // namespace tandem::keras
