#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/keras/image_dataset.h"

namespace tandem::keras::internal {

/// Throws InvalidArgumentError, with Keras's text, for options that are wrong whatever the files.
void check_image_options(const utils::ImageDatasetOptions& options);

std::int64_t channels_of(const std::string& color_mode);

/// The text of a list of strings as Python writes it: "['a', 'b']".
std::string listed(const std::vector<std::string>& names);

}  // namespace tandem::keras::internal
