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

struct GroupQueryAttentionOptions {
  double dropout = 0;
  bool use_bias = true;
  std::optional<std::int64_t> sliding_window = std::nullopt;  ///< positions nearer than this
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Attention in which groups of query heads share a head of keys and values (Ainslie et al. 2023):
/// called with (query, value) or (query, value, key), [batch, positions, features] each, and
/// perhaps an attention mask that broadcasts to [batch, query positions, key positions].
class TANDEM_EXPORT GroupQueryAttention : public Layer {
 public:
  GroupQueryAttention(std::int64_t head_dim, std::int64_t num_query_heads,
                      std::int64_t num_key_value_heads,
                      const GroupQueryAttentionOptions& options = {});
};
using GroupedQueryAttention = GroupQueryAttention;

}  // namespace tandem::keras
