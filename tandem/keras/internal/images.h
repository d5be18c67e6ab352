#pragma once

#include <string>

namespace tandem::keras::internal {

/// "NHWC" for "channels_last", "NCHW" for "channels_first"; throws InvalidArgumentError otherwise.
std::string ops_data_format(const std::string& layer, const std::string& data_format);

/// "VALID" or "SAME" for Keras' lower-case words; throws InvalidArgumentError otherwise.
std::string ops_padding(const std::string& layer, const std::string& padding);

}  // namespace tandem::keras::internal
