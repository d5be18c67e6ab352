#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/graph/graph.h"

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
  /// Whether a node can be made of it: its inputs, which are not too many, alone have the shape of
  /// the result.
  bool can_run(const PartialShape& shape) const;
};

/// Values of fewer elements are not large.
constexpr std::int64_t kMinLargeElements = 4096;

/// Whether values of this shape, as far as it is known, are large enough for fusing to pay: below
/// that the bookkeeping of a fused op costs more than the passes through memory that it saves.
bool is_large(const PartialShape& shape);

}  // namespace tandem::passes
