#include "tandem/keras/internal/images.h"

#include "tandem/core/error.h"

namespace tandem::keras::internal {

std::string ops_data_format(const std::string& layer, const std::string& data_format) {
  if (data_format == "channels_last") return "NHWC";
  if (data_format == "channels_first") return "NCHW";
  throw InvalidArgumentError(cat(layer,
                                 ": data_format must be 'channels_last' or 'channels_first', got '",
                                 data_format, "'."));
}

std::string ops_padding(const std::string& layer, const std::string& padding) {
  if (padding == "valid") return "VALID";
  if (padding == "same") return "SAME";
  throw InvalidArgumentError(
      cat(layer, ": padding must be 'valid' or 'same', got '", padding, "'."));
}

}  // namespace tandem::keras::internal
