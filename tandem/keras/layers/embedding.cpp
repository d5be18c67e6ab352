#include "tandem/keras/layers/embedding.h"

#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/gather_ops.h"

namespace tandem::keras {
namespace {

class EmbeddingImpl final : public LayerImpl {
 public:
  EmbeddingImpl(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& o)
      : LayerImpl("Embedding", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        input_dim_(input_dim),
        output_dim_(output_dim),
        options_(o) {
    internal::require_positive("Embedding", "input_dim", input_dim);
    internal::require_positive("Embedding", "output_dim", output_dim);
    keep_dtypes();
  }

  void build(const PartialShape&) override {
    table_ = add_weight("embeddings", {input_dim_, output_dim_},
                        {.initializer = options_.embeddings_initializer,
                         .regularizer = options_.embeddings_regularizer,
                         .constraint = options_.embeddings_constraint,
                         .saved_as = "_embeddings"});
  }

  Tensor call(const Tensor& x, bool) override {
    const Tensor rows =
        gather(table_, x.dtype() == int32 || x.dtype() == int64 ? x : cast(x, int32));
    return variable_dtype() == compute_dtype() ? rows : cast(rows, compute_dtype());
  }
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor>) const override {
    if (!options_.mask_zero) return {};
    return {not_equal(inputs[0], zeros_like(inputs[0]))};
  }

 private:
  std::int64_t input_dim_;
  std::int64_t output_dim_;
  EmbeddingOptions options_;
  Variable table_;
};

constexpr auto kArguments = [](auto& a, auto& o, auto& input_dim, auto& output_dim) {
  a("input_dim", input_dim);
  a("output_dim", output_dim);
  a("mask_zero", o.mask_zero);
  a("embeddings_initializer", o.embeddings_initializer);
  a("embeddings_regularizer", o.embeddings_regularizer);
  a("embeddings_constraint", o.embeddings_constraint);
};

}  // namespace

Embedding::Embedding(std::int64_t input_dim, std::int64_t output_dim,
                     const EmbeddingOptions& options)
    : Layer(
          internal::with_arguments(std::make_shared<EmbeddingImpl>(input_dim, output_dim, options),
                                   kArguments, options, input_dim, output_dim)) {}

namespace {
const bool kRegistered =
    internal::register_layer_class<Embedding, EmbeddingOptions, std::int64_t, std::int64_t>(
        "Embedding", kArguments);
}  // namespace

}  // namespace tandem::keras
