#pragma once

#include <string>

#include "tandem/ops/conv_ops.h"

namespace tandem::keras::internal {

/// "NHWC" for "channels_last", "NCHW" for "channels_first"; throws InvalidArgumentError otherwise.
std::string ops_data_format(const std::string& layer, const std::string& data_format);

/// "VALID" or "SAME" for Keras' lower-case words; throws InvalidArgumentError otherwise.
std::string ops_padding(const std::string& layer, const std::string& padding);

/// Both must be positive.
void require_positive_size(const std::string& layer, const std::string& what,
                           const nn::Size2D& size);

}  // namespace tandem::keras::internal
