#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct EmbeddingOptions {
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  /// 0 stands for "nothing here": the result gets a mask that leaves it out, for the layers after.
  bool mask_zero = false;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

/// A vector of output_dim numbers for each integer from 0 to input_dim − 1: [batch, n] gives
/// [batch, n, output_dim]. Other integers throw InvalidArgumentError.
class TANDEM_EXPORT Embedding : public Layer {
 public:
  Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options = {});
};

}  // namespace tandem::keras
