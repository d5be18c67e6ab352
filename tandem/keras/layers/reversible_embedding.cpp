#include "tandem/keras/layers/reversible_embedding.h"

#include <memory>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class ReversibleEmbeddingImpl;

// The way back as a layer of its own: it has no weights but those of the embedding.
class ReverseImpl final : public LayerImpl {
 public:
  explicit ReverseImpl(std::shared_ptr<ReversibleEmbeddingImpl> embedding)
      : LayerImpl("ReverseEmbedding"), embedding_(std::move(embedding)) {
    without_weights();
  }
  Tensor call(const Tensor& vectors, bool) override;

 private:
  std::shared_ptr<ReversibleEmbeddingImpl> embedding_;
};

class ReversibleEmbeddingImpl final : public LayerImpl {
 public:
  ReversibleEmbeddingImpl(std::int64_t input_dim, std::int64_t output_dim,
                          const ReversibleEmbeddingOptions& o)
      : LayerImpl("ReversibleEmbedding",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(o) {
    internal::require_positive("ReversibleEmbedding", "input_dim", input_dim);
    internal::require_positive("ReversibleEmbedding", "output_dim", output_dim);
    keep_dtypes();
  }

  void build(const PartialShape&) override {
    const WeightOptions options{.initializer = options_.embeddings_initializer,
                                .regularizer = options_.embeddings_regularizer,
                                .constraint = options_.embeddings_constraint,
                                .saved_as = "_embeddings"};
    table_ = add_weight("embeddings", {input_dim_, output_dim_}, options);
    if (!options_.tie_weights) {
      back_ = add_weight("reverse_embeddings", {output_dim_, input_dim_},
                         {.initializer = options_.embeddings_initializer});
    }
  }
  Tensor call(const Tensor& x, bool) override {
    const Tensor rows =
        gather(table_, x.dtype() == int32 || x.dtype() == int64 ? x : cast(x, int32));
    return variable_dtype() == compute_dtype() ? rows : cast(rows, compute_dtype());
  }
  Tensor reverse(const Tensor& given) {
    ensure_built({PartialShape({-1})});
    const Tensor vectors = cast(given, compute_dtype());
    const Tensor table = cast((back_.defined() ? back_ : table_).read_value(), compute_dtype());
    const Tensor flat = reshape(vectors, {-1, output_dim_});
    Tensor logits = matmul(flat, table, {.transpose_b = !back_.defined()});
    if (options_.logit_soft_cap)
      logits = tanh(logits / *options_.logit_soft_cap) * *options_.logit_soft_cap;
    if (vectors.rank() == 2) return logits;
    const Tensor leading = slice(shape(vectors), {0}, {vectors.rank() - 1});
    return reshape(logits, IntList(concat({leading, Tensor{static_cast<int>(input_dim_)}}, 0)));
  }
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor>) const override {
    if (!options_.mask_zero) return {};
    return {not_equal(inputs[0], zeros_like(inputs[0]))};
  }

 private:
  std::int64_t input_dim_, output_dim_;
  ReversibleEmbeddingOptions options_;
  Variable table_, back_;
};

Tensor ReverseImpl::call(const Tensor& vectors, bool) { return embedding_->reverse(vectors); }

constexpr auto kArguments = [](auto& a, auto& o, auto& input_dim, auto& output_dim) {
  a("input_dim", input_dim);
  a("output_dim", output_dim);
  a("tie_weights", o.tie_weights);
  a("mask_zero", o.mask_zero);
  a("embeddings_initializer", o.embeddings_initializer);
  a("embeddings_regularizer", o.embeddings_regularizer);
  a("embeddings_constraint", o.embeddings_constraint);
  a("logit_soft_cap", o.logit_soft_cap);
};

}  // namespace

ReversibleEmbedding::ReversibleEmbedding(std::int64_t input_dim, std::int64_t output_dim,
                                         const ReversibleEmbeddingOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<ReversibleEmbeddingImpl>(input_dim, output_dim, o), kArguments, o,
          input_dim, output_dim)) {}
Tensor ReversibleEmbedding::reverse(const Tensor& vectors) const {
  return std::static_pointer_cast<ReversibleEmbeddingImpl>(impl())->reverse(vectors);
}
KerasTensor ReversibleEmbedding::reverse(const KerasTensor& vectors) const {
  return make_layer<ReverseImpl>(std::static_pointer_cast<ReversibleEmbeddingImpl>(impl()))(
      vectors);
}

namespace {
const bool kRegistered =
    internal::register_layer_class<ReversibleEmbedding, ReversibleEmbeddingOptions, std::int64_t,
                                   std::int64_t>("ReversibleEmbedding", kArguments);
}  // namespace
}  // namespace tandem::keras
