#pragma once

#include <string>

#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// What is known of a pipeline without running it: the stages with their parameters, and the
/// sources' specs. Functions are not part of it.
std::string description(const DatasetBase& dataset);

/// 16 hexadecimal digits, equal for equal texts.
std::string fingerprint(const std::string& text);

}  // namespace tandem::data
