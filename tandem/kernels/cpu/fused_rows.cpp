#include "tandem/kernels/cpu/fused_rows.h"

#include <algorithm>
#include <string>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/kernels/cpu/float16_rows.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;

Shape shape_of(const Resize& r, int rank) {
  return rank == 3 ? Shape{r.out_height, r.out_width, r.channels} : r.out_shape();
}

}  // namespace

FusedRows::FusedRows(KernelContext& c, const Resize& r, int rank, int first_arg)
    : context_(c),
      out_(c.allocate_output(0, shape_of(r, rank))),
      row_size_(r.out_width * r.channels) {
  if (c.attr<std::vector<std::string>>("ops").empty()) return;
  program_ = FusedProgram::of(c, 1 + c.num_inputs() - first_arg);
  sources_.push_back(BlockSource::given());
  for (int i = first_arg; i < c.num_inputs(); ++i) {
    const Array& arg = c.input(i);
    if (arg.dtype() != DType::kFloat && arg.dtype() != DType::kBFloat16) {
      throw InvalidArgumentError(
          cat("Input ", i, " must be float or bfloat16, not ", arg.dtype(), "."));
    }
    if (!(broadcast(out_.shape(), arg.shape()) == out_.shape())) {
      throw InvalidArgumentError(cat("Input ", i, " of shape ", arg.shape(),
                                     " does not broadcast to the resized images, ", out_.shape(),
                                     "."));
    }
    sources_.emplace_back(arg, out_.shape());
  }
}

double FusedRows::cost() const {
  return static_cast<double>(row_size_) * (program_ ? program_->cost() + 0.3 : 0.3);
}

FusedRows::Writer::Writer(const FusedRows& rows)
    : rows_(rows), block_(std::min(kBlock, rows.row_size_)) {
  if (rows.out_.dtype() != DType::kFloat)
    row_ = rows.context_.allocate_temp(DType::kFloat, Shape{rows.row_size_});
  if (rows.program_) run_.emplace(*rows.program_, rows.sources_, block_);
}

float* FusedRows::Writer::place(std::int64_t i) {
  if (rows_.out_.dtype() != DType::kFloat) return row_.data<float>();
  return const_cast<Array&>(rows_.out_).data<float>() + i * rows_.row_size_;
}

void FusedRows::Writer::finish(std::int64_t i) {
  const std::int64_t size = rows_.row_size_, begin = i * size;
  float* const values = place(i);
  if (run_) {
    for (std::int64_t k = 0; k < size; k += block_)
      run_->block(begin + k, std::min(block_, size - k), values + k, values + k);
  }
  Array& out = const_cast<Array&>(rows_.out_);
  switch (out.dtype()) {
    case DType::kHalf: return from_floats(values, out.data<Half>() + begin, size);
    case DType::kBFloat16: return from_floats(values, out.data<BFloat16>() + begin, size);
    case DType::kDouble: return void(std::copy_n(values, size, out.data<double>() + begin));
    default: return;
  }
}

}  // namespace tandem::cpu
