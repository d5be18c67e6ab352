#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct MaxNumBoundingBoxesOptions {
  std::int64_t fill_value = -1;
  String name = {};
};
/// Bounding boxes of images, as many for each: the first max_number, or boxes of `fill_value`
/// behind them. `layer.outputs({boxes, labels})` takes boxes [batch, boxes, 4] and their labels
/// [batch, boxes] and returns both.
class TANDEM_EXPORT MaxNumBoundingBoxes : public Layer {
 public:
  explicit MaxNumBoundingBoxes(std::int64_t max_number,
                               const MaxNumBoundingBoxesOptions& options = {});
};

}  // namespace tandem::keras
