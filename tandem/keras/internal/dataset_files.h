#pragma once

#include <map>
#include <string>

#include "tandem/keras/get_file.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Where Keras keeps its datasets.
inline const std::string kDatasetsUrl =
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/";

/// A file that the user named, or the one of this name in the cache, downloaded if need be.
std::string dataset_file(const std::string& path, const std::string& name);

/// Throws DataLossError if it is not there.
Tensor named_array(const std::map<std::string, Tensor>& arrays, const std::string& name,
                   const std::string& path);

}  // namespace tandem::keras::internal
