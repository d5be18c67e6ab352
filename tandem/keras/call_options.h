#pragma once

#include <cstddef>
#include <optional>

#include "tandem/keras/mask_list.h"

namespace tandem::keras {

/// How a layer is called.
struct CallOptions {
  /// Whether dropout drops and batch normalisation uses the batch's statistics. If not given: what
  /// the model around is doing, and false outside of one.
  std::optional<bool> training = std::nullopt;
  /// Attention: no position looks at later ones.
  bool use_causal_mask = false;
  /// Attention: the probabilities are a further output.
  bool return_attention_scores = false;
  /// Which steps of the inputs count: bool [batch, steps] for each input that has a mask (an
  /// undefined tensor for one that has none). If not given: the masks that came with the inputs.
  /// They do within a model and within a function that is traced; eager calls one by one need this.
  /// In a call with KerasTensors: KerasTensors, such as an Input of bool.
  MaskList mask = {};

  bool is_training() const { return training.value_or(false); }
  /// The mask of an input; undefined if there is none.
  Tensor mask_of(std::size_t input) const {
    return input < mask.tensors().size() ? mask.tensors()[input] : Tensor();
  }
};

}  // namespace tandem::keras
