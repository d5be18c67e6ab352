#pragma once

#include <optional>

namespace tandem::keras {

/// How a layer is called.
struct CallOptions {
  /// Whether dropout drops and batch normalisation uses the batch's statistics. If not given: what
  /// the model around is doing, and false outside of one.
  std::optional<bool> training = std::nullopt;
  /// Attention: no position looks at later ones.
  bool use_causal_mask = false;

  bool is_training() const { return training.value_or(false); }
};

}  // namespace tandem::keras
