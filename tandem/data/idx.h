#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"

namespace tandem::data {

/// The array in an IDX file, the format of MNIST, or in one that gzip compressed: uint8, int8,
/// int16, int32, float32 or float64. Throws DataLossError if the file is damaged or cut off, with
/// its name and the offset.
TANDEM_EXPORT Tensor read_idx(const String& path);

/// The rows of IDX files side by side, such as images and labels: from_tensor_slices of `read_idx`.
TANDEM_EXPORT Dataset from_idx(const std::vector<std::string>& paths);

}  // namespace tandem::data
