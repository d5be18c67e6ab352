#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"

namespace tandem::data {

/// The stages that an iteration of `dataset` has, one a line, the last one first and inputs
/// indented below: with Options::fusion, as it is by default, some run as fewer or cheaper ones
/// ("Map+Batch"; a Map that runs on whole batches stands above its Batch). Traces functions.
TANDEM_EXPORT std::string stages(const Dataset& dataset);

}  // namespace tandem::data
