#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem::keras::utils {

struct GetFileOptions {
  String fname = {};   ///< the name in the cache; by default the end of `origin`
  String origin = {};  ///< where it is downloaded from: a URL, or any path
  String cache_subdir = "datasets";
  String cache_dir = {};  ///< $KERAS_HOME by default, or ~/.keras
  bool force_download = false;
};
/// The path of a file in Keras' cache, downloaded if it is not there yet. Downloading takes the
/// library of object stores (docs/file-systems.md). Throws NotFoundError, which names the URL and
/// the place where the file may be put by hand, if it cannot be had.
TANDEM_EXPORT std::string get_file(const GetFileOptions& options);

}  // namespace tandem::keras::utils
