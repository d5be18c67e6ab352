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

struct ReversibleEmbeddingOptions {
  bool tie_weights = true;  ///< the table serves both ways
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  bool mask_zero = false;
  std::optional<double> logit_soft_cap = std::nullopt;  ///< cap · tanh(logits / cap)
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// An Embedding that also goes back: from vectors [..., output_dim] to logits [..., input_dim] of
/// the numbers, as language models end.
class TANDEM_EXPORT ReversibleEmbedding : public Layer {
 public:
  ReversibleEmbedding(std::int64_t input_dim, std::int64_t output_dim,
                      const ReversibleEmbeddingOptions& options = {});
  Tensor reverse(const Tensor& vectors) const;
  KerasTensor reverse(const KerasTensor& vectors) const;
};

}  // namespace tandem::keras
