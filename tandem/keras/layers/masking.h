#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/positional.h"

namespace tandem::keras {

struct MaskingOptions {
  double mask_value = 0;
  String name = {};
  DTypePolicy dtype = {};
};

/// Leaves out the steps of [batch, steps, features] all of whose features are mask_value: they
/// become 0, and the result gets a mask that the layers after it honour (recurrent layers,
/// attention, GlobalAveragePooling1D, losses, …).
class TANDEM_EXPORT Masking : public Layer {
 public:
  explicit Masking(const MaskingOptions& options = {});
  template <internal::Number T>
  explicit Masking(T mask_value, const MaskingOptions& options = {})
      : Masking(internal::with_argument(options, &MaskingOptions::mask_value, mask_value,
                                        "mask_value")) {}
};

}  // namespace tandem::keras
