#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/color_augmentation.h"

namespace tandem::keras {

struct ElasticTransformOptions {
  ShareRange factor = 1.0;            ///< of images
  ShareRange scale = 1.0;             ///< how far pixels move, as a share of what is sensible
  String interpolation = "bilinear";  ///< or "nearest"
  String fill_mode = "reflect";       ///< or "constant", "nearest", "wrap", "mirror"
  double fill_value = 0;
  double min_value = 0;  ///< the range of the values, to which results are cut
  double max_value = 255;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Images bent by random displacements that change smoothly from pixel to pixel (Simard et al.
/// 2003), while training; see augmentation.h.
class TANDEM_EXPORT RandomElasticTransform : public Layer {
 public:
  explicit RandomElasticTransform(const ElasticTransformOptions& options = {});
};

}  // namespace tandem::keras
