#pragma once

#include <cstdint>
#include <vector>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// Integers of an int32 or int64 array, as ragged kernels compute with them.
std::vector<std::int64_t> integers_of(const Array& array);

/// The row splits in inputs [0, count) of a ragged array of `values` rows: each begins at 0, does
/// not fall and ends at the number of rows that it splits. Throws InvalidArgumentError otherwise.
std::vector<std::vector<std::int64_t>> nested_splits(const KernelContext& c, int count,
                                                     std::int64_t values);

/// Sets an output of dtype int32 or int64 to `values`; throws InvalidArgumentError if one does not
/// fit.
void set_integers(KernelContext& c, int output, const std::vector<std::int64_t>& values);

/// Sets an output of dtype int32 or int64 to the splits of `rows` rows of one length.
void set_even_splits(KernelContext& c, int output, std::int64_t rows, std::int64_t length);

/// `shape` with another number of rows.
Shape with_rows(const Shape& shape, std::int64_t rows);

}  // namespace tandem::cpu
