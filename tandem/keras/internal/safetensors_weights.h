#pragma once

#include <string>

#include "tandem/keras/model.h"
#include "tandem/keras/save_options.h"

namespace tandem::keras::internal {

// A model's weights in a safetensors file, by the weights' names: "dense/kernel".

void save_safetensors_weights(const Model& model, const std::string& path,
                              const SaveWeightsOptions& options);
void load_safetensors_weights(const Model& model, const std::string& path,
                              const LoadWeightsOptions& options);

}  // namespace tandem::keras::internal
