#pragma once

#include <functional>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/model.h"

namespace tandem::keras::models {

struct CloneModelOptions {
  /// The inputs of the clone, instead of new ones: one for each of the model's.
  std::vector<KerasTensor> input_tensors = {};
  /// Makes the clone's layer from the model's; by default one of the same class and arguments.
  /// Not called for Inputs and for models within, which are cloned layer by layer.
  std::function<Layer(const Layer&)> clone_function = nullptr;
};

/// A Sequential or functional model of the same architecture with new weights. Layers that are used
/// several times stay shared. Throws UnimplementedError for a layer of a class of one's own that is
/// not registered (serialization.h) and for models that are no graph of layers, and
/// InvalidArgumentError for input_tensors that do not fit.
TANDEM_EXPORT Model clone_model(const Model& model, const CloneModelOptions& options = {});

}  // namespace tandem::keras::models
