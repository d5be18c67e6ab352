#pragma once

#include <string>

namespace tandem::keras::internal {

bool file_exists(const std::string& path);

/// A folder of Keras' cache: below `cache_dir`, or $KERAS_HOME, or ~/.keras.
std::string cache_folder(const std::string& subdir, const std::string& cache_dir = {});

}  // namespace tandem::keras::internal
