#include "tandem/kernels/cpu/fused/fused_rows.h"

#include <algorithm>

#include "tandem/core/half.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"

namespace tandem::cpu {
namespace {

Shape shape_of(const Resize& r, int rank) {
  return rank == 3 ? Shape{r.out_height, r.out_width, r.channels} : r.out_shape();
}

}  // namespace

FusedRows::FusedRows(KernelContext& c, const Resize& r, int rank, int args)
    : row_size_(r.out_width * r.channels),
      empty_(r.out_shape().num_elements() == 0),
      dtype_(c.output_dtype(0)),
      out_(c.allocate_output(0, shape_of(r, rank)).raw_data()),
      program_(c, RowProgram::Which::kRows, args, shape_of(r, rank)) {}

FusedRows::Writer::Writer(const KernelContext& c, const FusedRows& rows)
    : rows_(rows), run_(rows.program_) {
  if (rows.dtype_ != DType::kFloat) row_ = c.allocate_temp(DType::kFloat, Shape{rows.row_size_});
}

float* FusedRows::Writer::place(std::int64_t i) {
  if (rows_.dtype_ != DType::kFloat) return row_.data<float>();
  return static_cast<float*>(rows_.out_) + i * rows_.row_size_;
}

void FusedRows::Writer::finish(std::int64_t i) {
  const std::int64_t size = rows_.row_size_, begin = i * size;
  float* const row = place(i);
  run_(i, row);
  switch (rows_.dtype_) {
    case DType::kHalf: return from_floats(row, static_cast<Half*>(rows_.out_) + begin, size);
    case DType::kBFloat16:
      return from_floats(row, static_cast<BFloat16*>(rows_.out_) + begin, size);
    case DType::kDouble: std::copy_n(row, size, static_cast<double*>(rows_.out_) + begin); return;
    default: return;
  }
}

}  // namespace tandem::cpu
