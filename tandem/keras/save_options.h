#pragma once

#include <string>
#include <vector>

namespace tandem::keras {

struct SaveWeightsOptions {
  /// Also what the optimizer remembers (momentums, number of steps, learning rate), so that
  /// training can go on as if it had not been interrupted. Needs a compiled model.
  bool optimizer = false;
};

struct LoadWeightsOptions {
  /// Also what the optimizer remembered.
  bool optimizer = false;
};

struct ExportGraphOptions {
  /// Names of the placeholders, one for each input; empty: those of the model's inputs.
  std::vector<std::string> inputs = {};
  /// Names of the nodes to fetch, one for each output; empty: those of the output layers.
  std::vector<std::string> outputs = {};
};

/// How an exported graph is run.
struct ExportedModel {
  std::vector<std::string> inputs;   ///< tensors to feed: "x:0"
  std::vector<std::string> outputs;  ///< tensors to fetch
};

}  // namespace tandem::keras
