#pragma once

#include <functional>
#include <vector>

#include "tandem/data/element.h"
#include "tandem/keras/model_impl.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::keras::internal {

/// A model's prediction as a traced function; needs no compile.
class Predictor {
 public:
  explicit Predictor(ModelImpl& model);
  /// The model's outputs for a batch, of whose tensors the first are the inputs.
  std::vector<Tensor> predict(const data::Element& batch) const;

 private:
  ModelImpl& model_;
  TracedFunction<std::function<std::vector<Tensor>(std::vector<Tensor>)>> function_;
};

}  // namespace tandem::keras::internal
