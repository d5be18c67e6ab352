#pragma once

#include <cstdint>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/graph/internal/elementwise_program.h"

// Sums over all axes but the last.

namespace tandem::passes {

/// Whether fused ops of some device add up rows of it: double, too, where values in double are
/// fused (is_fusible_in_double).
bool is_fusible_sum_dtype(DType dtype);
/// Whether fused ops add up rows of such a value.
bool has_row_sums(const PartialShape& shape);
/// Whether a reduction of a value of this rank has constant axes, all but the last.
bool all_axes_but_last(const Node& reduction, int rank);
/// A sum of rows, not fused, that may become one of _FusedElementwiseSums.
bool is_row_sum(const Node& node);
/// The values that such a sum, or a _FusedSum, reads.
std::vector<Output> summed_by(const Node& sum);
/// Puts what the sum adds up behind what the program has already; `root_number` is the number of
/// `root` there. Returns that of what is added up.
std::int64_t append_sum(const Node& sum, Output root, std::int64_t root_number,
                        ElementwiseProgram& program);

}  // namespace tandem::passes
