#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"

namespace tandem::keras {

struct NormalizationOptions {
  LayerAxes axis = -1;  ///< the features, each of which has a mean and a variance of its own
  /// One for each feature (or one for all); empty: `adapt` or a file gives them.
  std::vector<double> mean = {};
  std::vector<double> variance = {};
  std::string name = {};
  DTypePolicy dtype = {};
};

/// (x − mean) / √variance of features of the data, which training does not change.
class TANDEM_EXPORT Normalization : public Layer {
 public:
  explicit Normalization(const NormalizationOptions& options = {});
  /// Takes mean and variance from data [examples, …], all at once. Throws FailedPreconditionError
  /// if they were given.
  void adapt(const Tensor& data) const;
};

}  // namespace tandem::keras
