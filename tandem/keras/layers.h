#pragma once

// All layers.

#include "tandem/keras/layers/activation_layers.h"
#include "tandem/keras/layers/adaptive_pooling.h"
#include "tandem/keras/layers/attention.h"
#include "tandem/keras/layers/augmentation.h"
#include "tandem/keras/layers/clahe.h"
#include "tandem/keras/layers/color_augmentation.h"
#include "tandem/keras/layers/conv.h"
#include "tandem/keras/layers/conv_lstm.h"
#include "tandem/keras/layers/conv_transpose.h"
#include "tandem/keras/layers/dense.h"
#include "tandem/keras/layers/dot_attention.h"
#include "tandem/keras/layers/einsum_dense.h"
#include "tandem/keras/layers/elastic_transform.h"
#include "tandem/keras/layers/embedding.h"
#include "tandem/keras/layers/global_pooling.h"
#include "tandem/keras/layers/grouped_query_attention.h"
#include "tandem/keras/layers/hashed_crossing.h"
#include "tandem/keras/layers/image_mixing.h"
#include "tandem/keras/layers/input_layer.h"
#include "tandem/keras/layers/lambda.h"
#include "tandem/keras/layers/masking.h"
#include "tandem/keras/layers/max_num_bounding_boxes.h"
#include "tandem/keras/layers/merging.h"
#include "tandem/keras/layers/normalization.h"
#include "tandem/keras/layers/padding.h"
#include "tandem/keras/layers/pooling.h"
#include "tandem/keras/layers/preprocessing.h"
#include "tandem/keras/layers/recurrent.h"
#include "tandem/keras/layers/recurrent_cells.h"
#include "tandem/keras/layers/regularization.h"
#include "tandem/keras/layers/reshaping.h"
#include "tandem/keras/layers/reversible_embedding.h"
#include "tandem/keras/layers/separable_conv.h"
#include "tandem/keras/layers/spectral_normalization.h"
#include "tandem/keras/layers/spectrogram.h"
#include "tandem/keras/layers/unit_normalization.h"
#include "tandem/keras/layers/upsampling.h"
#include "tandem/keras/layers/wrappers.h"

namespace tandem::keras {

/// Keras' name for where layers are: `td::keras::layers::Dense` is `td::keras::Dense`.
namespace layers = ::tandem::keras;

}  // namespace tandem::keras
