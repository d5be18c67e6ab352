#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct GlobalPoolingOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  bool keepdims = false;
  String name = {};
  DTypePolicy dtype = {};
};
using GlobalPooling1DOptions = GlobalPoolingOptions;
using GlobalPooling2DOptions = GlobalPoolingOptions;
using GlobalPooling3DOptions = GlobalPoolingOptions;

// The mean, or the largest value, of each channel over all spatial axes: [batch, channels].
// GlobalAveragePooling1D leaves out the steps that a mask [batch, steps] leaves out.

#define TANDEM_KERAS_GLOBAL_POOLING(NAME)                    \
  class TANDEM_EXPORT NAME : public Layer {                  \
   public:                                                   \
    explicit NAME(const GlobalPoolingOptions& options = {}); \
  }
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling1D);
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling2D);
TANDEM_KERAS_GLOBAL_POOLING(GlobalAveragePooling3D);
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling1D);
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling2D);
TANDEM_KERAS_GLOBAL_POOLING(GlobalMaxPooling3D);
#undef TANDEM_KERAS_GLOBAL_POOLING

}  // namespace tandem::keras
