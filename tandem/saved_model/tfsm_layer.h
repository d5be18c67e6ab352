#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct TFSMLayerOptions {
  /// A function of the model, such as Keras' export has it, or a signature ("serving_default").
  String call_endpoint = "serve";
  String call_training_endpoint = {};  ///< what runs while training; empty: the same one
  bool trainable = true;
  String name = {};
};
/// A SavedModel as a layer: its variables are the layer's weights, and training changes them. Takes
/// one tensor; several are the list that Keras' exports take, the dictionary, in the order of its
/// names, or the arguments of the function, or of the signature in the order of its names. Not read
/// from `.keras` files, as Keras does not in its safe mode: the model is a file of its own.
///
///     td::keras::TFSMLayer features("exported_model");
///
/// Throws as td::saved_model::load, and NotFoundError for an endpoint that the model lacks.
class TANDEM_EXPORT TFSMLayer : public Layer {
 public:
  explicit TFSMLayer(const String& filepath, const TFSMLayerOptions& options = {});
};

}  // namespace tandem::keras
