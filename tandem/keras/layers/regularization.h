#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct DropoutOptions {
  /// Shape of the decisions to keep or drop, broadcast to the input's; -1: the input's size there.
  std::vector<std::int64_t> noise_shape = {};
  std::optional<std::int64_t> seed = std::nullopt;
  std::string name = {};
};

/// While training: sets elements to 0 with probability `rate` and scales the others by 1 / (1 −
/// rate).
class TANDEM_EXPORT Dropout : public Layer {
 public:
  explicit Dropout(double rate, const DropoutOptions& options = {});
};

struct GaussianNoiseOptions {
  std::optional<std::int64_t> seed = std::nullopt;
  std::string name = {};
};
/// While training: adds normal noise of this deviation.
class TANDEM_EXPORT GaussianNoise : public Layer {
 public:
  explicit GaussianNoise(double stddev, const GaussianNoiseOptions& options = {});
};

}  // namespace tandem::keras
