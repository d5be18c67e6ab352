#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/positional.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct DropoutOptions {
  /// Shape of the decisions to keep or drop, broadcast to the input's; -1: the input's size there.
  std::vector<std::int64_t> noise_shape = {};
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  DTypePolicy dtype = {};
};

/// While training: sets elements to 0 with probability `rate` and scales the others by 1 / (1 −
/// rate).
class TANDEM_EXPORT Dropout : public Layer {
 public:
  explicit Dropout(double rate, const DropoutOptions& options = {});
};

struct SpatialDropoutOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  DTypePolicy dtype = {};
};
/// Dropout of whole channels: all steps (pixels, voxels) of an example lose the same ones.
class TANDEM_EXPORT SpatialDropout1D : public Layer {
 public:
  explicit SpatialDropout1D(double rate, const SpatialDropoutOptions& options = {});
};
class TANDEM_EXPORT SpatialDropout2D : public Layer {
 public:
  explicit SpatialDropout2D(double rate, const SpatialDropoutOptions& options = {});
};
class TANDEM_EXPORT SpatialDropout3D : public Layer {
 public:
  explicit SpatialDropout3D(double rate, const SpatialDropoutOptions& options = {});
};

/// Dropout for networks of SELUs: what is dropped becomes the value that SELU tends to, and all is
/// scaled and shifted so that mean and variance stay as they were.
class TANDEM_EXPORT AlphaDropout : public Layer {
 public:
  explicit AlphaDropout(double rate, const DropoutOptions& options = {});
};

struct GaussianNoiseOptions {
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  DTypePolicy dtype = {};
};
/// While training: adds normal noise of this deviation.
class TANDEM_EXPORT GaussianNoise : public Layer {
 public:
  explicit GaussianNoise(double stddev, const GaussianNoiseOptions& options = {});
};

/// While training: multiplies by normal numbers of mean 1 and deviation √(rate / (1 − rate)), which
/// is what dropout of this rate does on average.
class TANDEM_EXPORT GaussianDropout : public Layer {
 public:
  explicit GaussianDropout(double rate, const GaussianNoiseOptions& options = {});
};

struct ActivityRegularizationOptions {
  double l1 = 0;
  double l2 = 0;
  String name = {};
  DTypePolicy dtype = {};
};
/// Its input as it is; adds l1 · Σ|x| + l2 · Σx², averaged over the batch, to the loss.
class TANDEM_EXPORT ActivityRegularization : public Layer {
 public:
  explicit ActivityRegularization(const ActivityRegularizationOptions& options = {});
  template <internal::Number T>
  explicit ActivityRegularization(T l1, double l2 = 0,
                                  const ActivityRegularizationOptions& options = {})
      : ActivityRegularization(internal::with_argument(
            internal::with_argument(options, &ActivityRegularizationOptions::l1, l1, "l1"),
            &ActivityRegularizationOptions::l2, l2, "l2")) {}
};

}  // namespace tandem::keras
