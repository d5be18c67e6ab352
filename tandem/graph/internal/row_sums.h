#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/graph/graph.h"

// Sums over all axes but the last, and what fused ops compute.

namespace tandem::passes {

/// What _FusedElementwise and its like compute, as their attributes say: operands are inputs from 0
/// on, and results of ops from -1 down.
struct ElementwiseProgram {
  std::vector<Output> inputs;
  std::vector<std::string> ops;
  std::vector<std::int64_t> operands;

  /// The number of an input, which is added if it is new.
  std::int64_t input(Output in);
  /// The number of the last op's result.
  std::int64_t last() const { return -static_cast<std::int64_t>(ops.size()); }
  void write(AttrMap& attrs) const;
};

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
