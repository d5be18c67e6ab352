#pragma once

#include <map>
#include <string>
#include <vector>

#include "tandem/core/string_list.h"
namespace tandem::keras {

struct SaveWeightsOptions {
  /// Also what the optimizer remembers (momentums, number of steps, learning rate), so that
  /// training can go on as if it had not been interrupted. Needs a compiled model.
  bool optimizer = false;
};

struct LoadWeightsOptions {
  /// Also what the optimizer remembered.
  bool optimizer = false;
  /// What a safetensors file calls a weight, by the weight's name in the model ("dense/kernel").
  /// Weights that are left out have their own names there. With names given, tensors of the file
  /// that no weight asks for are passed over; without, they are an error.
  std::map<std::string, std::string> names = {};
};

struct ExportGraphOptions {
  /// Names of the placeholders, one for each input; empty: those of the model's inputs.
  StringList inputs = {};
  /// Names of the nodes to fetch, one for each output; empty: those of the output layers.
  StringList outputs = {};
};

/// How an exported graph is run.
struct ExportedModel {
  std::vector<std::string> inputs;   ///< tensors to feed: "x:0"
  std::vector<std::string> outputs;  ///< tensors to fetch
};

}  // namespace tandem::keras
