#pragma once

#include <string>
#include <vector>

#include <tandem/keras/keras.h>

#include "tests/reference/keras/records.h"

namespace reference {

struct NamedInputs {
  std::vector<std::string> names;
  std::vector<tandem::Tensor> values;
};

/// In the order in which the layer takes them; merging layers name theirs by number.
NamedInputs inputs_of(const Json& record);

/// The values of stored weights.
std::vector<tandem::Tensor> values_of(const Json& weights);

/// How far results, gradients and weights after a step may be from Keras'.
struct LayerTolerance {
  double output = 2e-5;
  double gradient = 1e-4;
};

/// Makes the layer of a record with its weights, calls it, differentiates and makes a step; all
/// must be as Keras has it, eagerly or in a traced function.
void check_layer(const Json& record, bool traced, const LayerTolerance& tolerance = {});

}  // namespace reference
