#pragma once

#include <cstdint>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/fused/row_program.h"
#include "tandem/kernels/cpu/image/resample.h"

namespace tandem::cpu {

/// Output 0 of _FusedResize and _FusedDecodeJpeg, of which each row is finished as soon as it has
/// been made: the node's program, then a cast.
class FusedRows {
 public:
  /// Allocates the output for the new sizes. `rank` is 3 for an image, 4 for a batch; `args` is the
  /// number of the node's first input for programs.
  FusedRows(KernelContext& c, const Resize& r, int rank, int args);
  bool is_empty() const { return empty_; }
  /// ns for a row.
  double cost() const { return static_cast<double>(row_size_) * (0.3 + program_.cost()); }

  /// Writes rows; one for each thread at work.
  class Writer {
   public:
    /// `rows` outlives it.
    Writer(const KernelContext& c, const FusedRows& rows);
    /// Where row i of all is to be made, in float.
    float* place(std::int64_t i);
    /// What was made there is finished and written.
    void finish(std::int64_t i);

   private:
    const FusedRows& rows_;
    Array row_;  // if the output is no float
    RowProgram::Run run_;
  };

 private:
  std::int64_t row_size_;
  bool empty_;
  DType dtype_;
  void* out_;
  RowProgram program_;
};

/// Makes all rows of `images`, with the node's attribute `method`. `rank` and `args` are those of
/// FusedRows.
void resize_images(KernelContext& c, const Resize& r, int rank, int args, const Array& images);

}  // namespace tandem::cpu
