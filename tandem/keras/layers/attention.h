#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct MultiHeadAttentionOptions {
  std::optional<std::int64_t> value_dim = std::nullopt;  ///< of each head; key_dim by default
  double dropout = 0.0;                                  ///< of the attention probabilities
  bool use_bias = true;
  std::optional<std::int64_t> output_dim = std::nullopt;  ///< the query's last size by default
  /// How far a position looks to both sides: less than this number of positions.
  std::optional<std::int64_t> sliding_window = std::nullopt;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  bool use_gate = false;  ///< each head's result is multiplied by sigmoid(query · a kernel)
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

/// Attention by several heads side by side (Vaswani et al. 2017). Query [batch, t, d], value and
/// key [batch, s, …]; the result is [batch, t, output_dim]. Masks of query, value and key
/// (CallOptions::mask, or what came with the inputs) and an attention mask all have to agree before
/// a position looks at another. With CallOptions::return_attention_scores the probabilities [batch,
/// heads, t, s] are a second output.
///
///     td::keras::MultiHeadAttention attention(2, 16);
///     auto y = attention(x, x, {.use_causal_mask = true});
///     auto z = attention.outputs({query, value, key, mask})[0];   // mask: bool [batch, t, s] or
///     [1, t, s]
class TANDEM_EXPORT MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim,
                     const MultiHeadAttentionOptions& options = {});

  using Layer::operator();
  Tensor operator()(const Tensor& query, const Tensor& value,
                    const CallOptions& options = {}) const;
  KerasTensor operator()(const KerasTensor& query, const KerasTensor& value,
                         const CallOptions& options = {}) const;
};

}  // namespace tandem::keras
