#pragma once

#include <string>

#include "tandem/keras/model.h"

namespace tandem::keras::internal {

/// The layers of a model and how they are connected, in the part of Keras' JSON that TensorBoard
/// draws its graph of layers from. "" for models of classes of the user's own.
std::string model_graph_json(const Model& model);

}  // namespace tandem::keras::internal
