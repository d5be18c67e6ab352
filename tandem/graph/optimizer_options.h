#pragma once

namespace tandem {

/// Which passes change a graph before it runs (docs/optimization.md). The names are those of
/// TensorFlow's tf.config.optimizer.set_experimental_options, as far as it has the pass.
struct OptimizerOptions {
  /// True: none of the below, graphs run node by node as they were made.
  bool disable_meta_optimizer = false;
  /// What depends on constants alone is computed once.
  bool constant_folding = true;
  /// x * 1, double transposes and the like.
  bool arithmetic_optimization = true;
  /// Keeps one of equal nodes.
  bool common_subgraph_elimination = true;
  /// Convolutions and products take in what follows them: batch norm, scale, bias, residual,
  /// activation, cast; and the Pad before them.
  bool remapping = true;
  /// Constant weights of what remapping has made are laid out for the processor once.
  bool packed_weights = true;
  /// Trees of elementwise ops become one op.
  bool elementwise_fusion = true;
  /// Decoding, resizing and the elementwise ops that follow become one op.
  bool image_fusion = true;

  /// The same without fusing: what may be done before it is known where nodes run.
  OptimizerOptions without_fusion() const {
    OptimizerOptions options = *this;
    options.remapping = options.elementwise_fusion = options.image_fusion = false;
    return options;
  }
  bool operator==(const OptimizerOptions& other) const = default;
};

}  // namespace tandem
