#pragma once

#include <cstdint>

#include "tandem/data/dataset.h"

namespace tandem::data {

/// Batch on threads: elements are drawn in order by one thread at a time, and copied into their
/// batches by several.
Dataset parallel_batch(const Dataset& input, std::int64_t size, const BatchOptions& options);

}  // namespace tandem::data
