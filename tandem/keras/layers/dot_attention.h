#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

// Attention with one head and no projections. Called with {query [batch, t, d], value [batch, s,
// e]} and perhaps key [batch, s, d], the value by default; the result is [batch, t, e]. Masks of
// query [batch, t] and value [batch, s] (CallOptions::mask, or what came with the inputs): no query
// looks at values that are left out, and the results of queries that are left out are 0. With
// CallOptions::return_attention_scores the probabilities [batch, t, s] are a second output.

struct AttentionOptions {
  bool use_scale = false;     ///< a weight that the scores are multiplied by
  String score_mode = "dot";  ///< query · key, or "concat": Σ tanh(query + key)
  double dropout = 0.0;       ///< of the probabilities
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Luong's attention (2015).
class TANDEM_EXPORT Attention : public Layer {
 public:
  explicit Attention(const AttentionOptions& options = {});
};

struct AdditiveAttentionOptions {
  bool use_scale = true;  ///< a weight for each feature of tanh(query + key)
  double dropout = 0.0;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Bahdanau's attention (2014): the scores are Σ scale · tanh(query + key).
class TANDEM_EXPORT AdditiveAttention : public Layer {
 public:
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});
};

}  // namespace tandem::keras
