#pragma once

#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/recurrent.h"
#include "tandem/keras/layers/reshaping.h"

namespace tandem::keras {

struct BidirectionalOptions {
  /// How the results of both directions become one: "concat", "sum", "mul" or "ave"; nullopt: they
  /// stay two outputs.
  std::optional<String> merge_mode = "concat";
  /// The layer for the other direction, if it is not to be a copy: it must have `go_backwards`.
  Layer backward_layer = {};
  String name = {};
  DTypePolicy dtype = {};
};
/// A recurrent layer in both directions: two copies of `layer`, with weights of their own. Further
/// inputs are the first states of the forward copy, then those of the backward one.
class TANDEM_EXPORT Bidirectional : public Layer {
 public:
  explicit Bidirectional(const Layer& layer, const BidirectionalOptions& options = {});
};

/// A layer applied to every step of [batch, steps, ...] by itself, as if the steps were further
/// examples of the batch.
class TANDEM_EXPORT TimeDistributed : public Layer {
 public:
  explicit TimeDistributed(const Layer& layer, const NamedOptions& options = {});
};

}  // namespace tandem::keras
