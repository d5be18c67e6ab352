#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/dtype_policy.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"

/// Pooling to a given size, whatever the size of the input: each output is the largest or the mean
/// of an equal share of it. The input's sizes must be known.
namespace tandem::keras {

struct AdaptivePoolingOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  String name = {};
  DTypePolicy dtype = {};
};

class TANDEM_EXPORT AdaptiveAveragePooling1D : public Layer {
 public:
  explicit AdaptiveAveragePooling1D(std::int64_t output_size,
                                    const AdaptivePoolingOptions& options = {});
};
class TANDEM_EXPORT AdaptiveAveragePooling2D : public Layer {
 public:
  explicit AdaptiveAveragePooling2D(Size2D output_size, const AdaptivePoolingOptions& options = {});
};
class TANDEM_EXPORT AdaptiveAveragePooling3D : public Layer {
 public:
  explicit AdaptiveAveragePooling3D(Size3D output_size, const AdaptivePoolingOptions& options = {});
};
class TANDEM_EXPORT AdaptiveMaxPooling1D : public Layer {
 public:
  explicit AdaptiveMaxPooling1D(std::int64_t output_size,
                                const AdaptivePoolingOptions& options = {});
};
class TANDEM_EXPORT AdaptiveMaxPooling2D : public Layer {
 public:
  explicit AdaptiveMaxPooling2D(Size2D output_size, const AdaptivePoolingOptions& options = {});
};
class TANDEM_EXPORT AdaptiveMaxPooling3D : public Layer {
 public:
  explicit AdaptiveMaxPooling3D(Size3D output_size, const AdaptivePoolingOptions& options = {});
};

}  // namespace tandem::keras
