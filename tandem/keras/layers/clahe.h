#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"

namespace tandem::keras {

struct ClaheOptions {
  double min_value = 0;  ///< the range of the values
  double max_value = 255;
  double clip_limit = 4;  ///< of a bin of a histogram, as a multiple of the mean; 0: none
  Size2D tile_grid_size = {8, 8};
  String name = {};
};
/// The contrast of images, [height, width, channels] or batches of them, raised in each tile by
/// itself: a value is replaced by the share of smaller ones in the tiles around, interpolated
/// between their middles (contrast limited adaptive histogram equalization).
class TANDEM_EXPORT ContrastLimitedAdaptiveHistogramEqualization : public Layer {
 public:
  explicit ContrastLimitedAdaptiveHistogramEqualization(const ClaheOptions& options = {});
};

}  // namespace tandem::keras
