#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/fused/fused_program.h"

namespace tandem::cpu {

/// Elementwise ops on a value that is made row by row: each row is computed in its place.
class RowProgram {
 public:
  /// Which of the two that a node may have: `line_ops` and `line_operands`, with as many further
  /// inputs as `num_line_args` says, or `ops` and `operands`, with those that follow. The first
  /// input of either is the row.
  enum class Which { kLines, kRows };

  /// `args` is the number of the node's first input for programs. All of them must broadcast to
  /// `shape`, that of the whole value.
  RowProgram(KernelContext& c, Which which, int args, const Shape& shape);
  /// ns for an element.
  double cost() const { return program_ ? program_->cost() + 0.3 : 0; }

  /// One for each thread at work.
  class Run {
   public:
    /// `program` outlives it.
    explicit Run(const RowProgram& program);
    /// Row i of all.
    void operator()(std::int64_t i, float* row);

   private:
    std::int64_t size_;
    std::int64_t block_;
    std::optional<FusedRun> run_;
  };

 private:
  std::int64_t row_size_;
  Ref<FusedProgram> program_;  // null: rows stay as they are
  std::vector<BlockSource> sources_;
};

}  // namespace tandem::cpu
