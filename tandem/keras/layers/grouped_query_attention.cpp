#include "tandem/keras/layers/grouped_query_attention.h"

#include <cmath>
#include <memory>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/activation_layers.h"
#include "tandem/keras/layers/einsum_dense.h"
#include "tandem/keras/layers/regularization.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class GroupedImpl final : public LayerImpl {
 public:
  GroupedImpl(std::int64_t head_dim, std::int64_t query_heads, std::int64_t key_value_heads,
              const GroupQueryAttentionOptions& o)
      : LayerImpl("GroupedQueryAttention",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        head_dim_(head_dim),
        query_heads_(query_heads),
        key_value_heads_(key_value_heads),
        options_(o) {
    const char* who = "GroupQueryAttention";
    internal::require_positive(who, "head_dim", head_dim);
    internal::require_positive(who, "num_query_heads", query_heads);
    internal::require_positive(who, "num_key_value_heads", key_value_heads);
    internal::require_rate(who, "dropout", o.dropout);
    if (o.sliding_window) internal::require_positive(who, "sliding_window", *o.sliding_window);
    if (query_heads % key_value_heads != 0) {
      throw InvalidArgumentError(
          cat(who, ": `num_query_heads` must be divisible by `num_key_value_heads`, got ",
              query_heads, " and ", key_value_heads, "."));
    }
    pass_masks();
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    require_inputs(inputs.size());
    const auto dense = [&](const char* equation, std::vector<std::int64_t> shape, const char* bias,
                           const char* name, const char* saved_as) {
      return add_layer(EinsumDense(equation, shape,
                                   {.bias_axes = options_.use_bias ? bias : "",
                                    .kernel_initializer = options_.kernel_initializer,
                                    .bias_initializer = options_.bias_initializer,
                                    .kernel_regularizer = options_.kernel_regularizer,
                                    .bias_regularizer = options_.bias_regularizer,
                                    .kernel_constraint = options_.kernel_constraint,
                                    .bias_constraint = options_.bias_constraint,
                                    .name = name,
                                    .dtype = dtype_policy()}),
                       saved_as);
    };
    const std::int64_t features = known_size(inputs[0], -1);
    query_ = dense("bqm,muh->bquh", {-1, query_heads_, head_dim_}, "uh", "query", "_query_dense");
    key_ = dense("bkm,mvh->bkvh", {-1, key_value_heads_, head_dim_}, "vh", "key", "_key_dense");
    value_ =
        dense("bkm,mvh->bkvh", {-1, key_value_heads_, head_dim_}, "vh", "value", "_value_dense");
    output_ = dense("bquh,uhm->bqm", {-1, features}, "m", "attention_output", "_output_dense");
    softmax_ = add_layer(Softmax(), "_softmax");
    if (options_.dropout > 0)
      dropout_ = add_layer(Dropout(options_.dropout, {.seed = options_.seed}), "_dropout_layer");
    build_sublayer(query_, {inputs[0]});
    build_sublayer(key_, {inputs.size() > 2 ? inputs[2] : inputs[1]});
    build_sublayer(value_, {inputs[1]});
    build_sublayer(output_, {PartialShape({-1, -1, query_heads_, head_dim_})});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    require_inputs(inputs.size());
    const std::int64_t repeats = query_heads_ / key_value_heads_;
    const Tensor q = query_(inputs[0]) * (1 / std::sqrt(static_cast<double>(head_dim_)));
    const Tensor k = repeated(key_(inputs.size() > 2 ? inputs[2] : inputs[1]), repeats);
    const Tensor v = repeated(value_(inputs[1]), repeats);
    const Tensor scores = einsum("bquh,bkuh->buqk", {q, k});
    const Tensor mask = combined_mask(inputs, scores, how);
    const Tensor probabilities =
        mask.defined() ? softmax_(scores, {.mask = mask}) : softmax_(scores);
    const Tensor weights =
        dropout_.defined() ? dropout_(probabilities, {.training = how.training}) : probabilities;
    const Tensor result = output_(einsum("buqk,bkuh->bquh", {weights, v}));
    if (how.return_attention_scores) return {result, probabilities};
    return {result};
  }
  InputForm input_form() const override { return InputForm::kSeparate; }

 private:
  void require_inputs(std::size_t count) const {
    if (count < 2 || count > 4) {
      throw InvalidArgumentError(
          cat(prefix(), "takes query and value, then perhaps key and attention mask. Received ",
              count, " input(s): for self-attention give the same one twice, (x, x)."));
    }
  }
  // Each head of [batch, positions, heads, size] so many times, one after the other.
  static Tensor repeated(const Tensor& x, std::int64_t times) {
    if (times == 1) return x;
    return repeat(x, times, 2);
  }

  // Which pairs of positions count, as [batch, 1, query, key]; undefined: all.
  Tensor combined_mask(std::span<const Tensor> inputs, const Tensor& scores,
                       const CallOptions& how) const {
    Tensor mask;
    const auto join = [&](const Tensor& other) {
      mask = mask.defined() ? logical_and(mask, other) : other;
    };
    const auto boolean = [](const Tensor& x) { return cast(x, DType::kBool); };
    if (how.mask_of(0).defined()) join(expand_dims(boolean(how.mask_of(0)), -1));
    if (how.mask_of(1).defined()) join(expand_dims(boolean(how.mask_of(1)), -2));
    if (how.mask_of(2).defined()) join(expand_dims(boolean(how.mask_of(2)), -2));
    const Tensor sizes = shape(scores);
    const Tensor rows = reshape(range(sizes[2]), {1, -1, 1});
    const Tensor columns = reshape(range(sizes[3]), {1, 1, -1});
    if (how.use_causal_mask) join(rows >= columns);
    if (options_.sliding_window)
      join(abs(rows - columns) < static_cast<int>(*options_.sliding_window));
    if (inputs.size() > 3) join(boolean(inputs[3]));
    if (!mask.defined()) return mask;
    const Tensor full = mask.rank() == 4 ? mask : expand_dims(mask, -3);
    return logical_and(full, ones_like(scores, DType::kBool));
  }

  std::int64_t head_dim_, query_heads_, key_value_heads_;
  GroupQueryAttentionOptions options_;
  Layer query_, key_, value_, output_, softmax_, dropout_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& head_dim, auto& query_heads,
                               auto& key_value_heads) {
  a("head_dim", head_dim);
  a("num_query_heads", query_heads);
  a("num_key_value_heads", key_value_heads);
  a("use_bias", o.use_bias);
  a("dropout", o.dropout);
  a("sliding_window", o.sliding_window);
  a("kernel_initializer", o.kernel_initializer);
  a("bias_initializer", o.bias_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("bias_regularizer", o.bias_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("bias_constraint", o.bias_constraint);
  a("seed", o.seed);
};

}  // namespace

GroupQueryAttention::GroupQueryAttention(std::int64_t head_dim, std::int64_t query_heads,
                                         std::int64_t key_value_heads,
                                         const GroupQueryAttentionOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<GroupedImpl>(head_dim, query_heads, key_value_heads, o), kArguments, o,
          head_dim, query_heads, key_value_heads)) {}

namespace {
bool add_class(const char* name) {
  return internal::register_layer_class<GroupQueryAttention, GroupQueryAttentionOptions,
                                        std::int64_t, std::int64_t, std::int64_t>(name, kArguments);
}
// Keras' class, and the name that it is exported under, which files have.
const bool kRegistered[] = {add_class("GroupedQueryAttention"), add_class("GroupQueryAttention")};
}  // namespace
}  // namespace tandem::keras
