#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/fused_program.h"
#include "tandem/kernels/cpu/resample.h"

namespace tandem::cpu {

/// Output 0 of _FusedResize and _FusedDecodeJpeg, of which each row is finished as soon as it has
/// been made: the node's program, then a cast.
class FusedRows {
 public:
  /// Allocates the output for the new sizes. `rank` is 3 for an image, 4 for a batch; the
  /// program's further inputs are the node's from `first_arg` on, and must broadcast to the output.
  FusedRows(KernelContext& c, const Resize& r, int rank, int first_arg);
  bool is_empty() const { return out_.num_elements() == 0; }
  /// ns for a row.
  double cost() const;

  /// Writes rows; one for each thread at work.
  class Writer {
   public:
    /// `rows` outlives it.
    explicit Writer(const FusedRows& rows);
    /// Where row i of all is to be made, in float.
    float* place(std::int64_t i);
    /// What was made there is finished and written.
    void finish(std::int64_t i);

   private:
    const FusedRows& rows_;
    std::int64_t block_;
    Array row_;  // if the output is no float
    std::optional<FusedRun> run_;
  };

 private:
  const KernelContext& context_;
  Array out_;
  std::int64_t row_size_ = 0;
  Ref<FusedProgram> program_;  // null: none
  std::vector<BlockSource> sources_;
};

}  // namespace tandem::cpu
