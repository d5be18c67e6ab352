// _FusedElementwise and _FusedSum.

#include <algorithm>
#include <cstring>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/channel_rows.h"
#include "tandem/kernels/cpu/channels.h"
#include "tandem/kernels/cpu/float16_rows.h"
#include "tandem/kernels/cpu/fused_program.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;

Shape common_shape(const KernelContext& c) {
  Shape shape = c.input(0).shape();
  for (int i = 1; i < c.num_inputs(); ++i)
    if (!(shape == c.input(i).shape())) shape = broadcast(shape, c.input(i).shape());
  return shape;
}

// An input in the result's memory serves as it is if it has the same elements; a smaller one of
// another type is copied out of the way.
std::vector<BlockSource> sources_of(const KernelContext& c, const Shape& shape,
                                    const Array* out = nullptr) {
  std::vector<BlockSource> sources;
  sources.reserve(static_cast<std::size_t>(c.num_inputs()));
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).dtype() != DType::kFloat && c.input(i).dtype() != DType::kBFloat16) {
      throw InvalidArgumentError(
          cat("Input ", i, " must be float or bfloat16, not ", c.input(i).dtype(), "."));
    }
    const Array& input = c.input(i);
    if (out && input.raw_data() == out->raw_data() &&
        !(input.dtype() == out->dtype() && input.num_elements() == out->num_elements())) {
      Array copy = c.allocate_temp(input.dtype(), input.shape());
      std::memcpy(copy.raw_data(), input.raw_data(), input.num_bytes());
      sources.emplace_back(copy, shape);
    } else {
      sources.emplace_back(input, shape);
    }
  }
  return sources;
}

void fused_elementwise(KernelContext& c) {
  const Ref<FusedProgram> program = FusedProgram::of(c);
  const Shape shape = common_shape(c);
  int reused = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).dtype() == c.output_dtype(0) && c.input(i).shape() == shape &&
        c.may_overwrite_input(i)) {
      reused = i;
      break;
    }
  }
  Array& out = c.reuse_or_allocate_output(reused, 0, shape);
  const std::vector<BlockSource> sources = sources_of(c, shape, &out);
  const std::int64_t count = out.num_elements();
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  const bool is_float = out.dtype() == DType::kFloat;
  c.intra_op().parallel_for(
      blocks, (program->cost() + 0.3) * kBlock, [&](std::int64_t first, std::int64_t last) {
        FusedRun run(*program, sources, kBlock);
        float values[kBlock];
        for (std::int64_t b = first; b < last; ++b) {
          const std::int64_t begin = b * kBlock, n = std::min(kBlock, count - begin);
          if (is_float) {
            run.block(begin, n, out.data<float>() + begin);
          } else {
            from_floats(run.compute(begin, n, values), out.data<BFloat16>() + begin, n);
          }
        }
      });
}

void fused_sum(KernelContext& c) {
  const Ref<FusedProgram> program = FusedProgram::of(c);
  const Shape shape = common_shape(c);
  if (shape.rank() < 1) throw InvalidArgumentError("The value must have an axis that stays.");
  const std::vector<BlockSource> sources = sources_of(c, shape);
  const std::int64_t columns = shape[shape.rank() - 1];
  const Channels d{shape.product(0, shape.rank() - 1), columns, 1};
  Shape out_shape{columns};
  if (c.attr<bool>("keep_dims")) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(shape.rank()), 1);
    dims.back() = columns;
    out_shape = Shape(dims);
  }
  Array& out = c.allocate_output(0, out_shape);
  if (columns == 0) return;
  // Floats are added up over some hundred rows, and those sums in double.
  constexpr std::int64_t kRowsInFloat = 256;
  const std::int64_t rows = std::min(kRowsInFloat, std::max<std::int64_t>(1, kBlock / columns));
  std::vector<double> totals(static_cast<std::size_t>(columns));
  Pieces::of(d).sum(c, d, columns, totals.data(),
                    [&](std::int64_t begin, std::int64_t end, double* sums) {
                      FusedRun run(*program, sources, rows * columns);
                      std::vector<float> values(static_cast<std::size_t>(rows * columns));
                      std::vector<float> part(static_cast<std::size_t>(columns), 0.0f);
                      std::int64_t added = 0;
                      const auto flush = [&] {
                        for (std::size_t i = 0; i < part.size(); ++i)
                          sums[i] += static_cast<double>(part[i]);
                        std::fill(part.begin(), part.end(), 0.0f);
                        added = 0;
                      };
                      for (std::int64_t row = begin; row < end; row += rows) {
                        const std::int64_t n = std::min(rows, end - row);
                        const float* at = run.compute(row * columns, n * columns, values.data());
                        sum_rows(at, part.data(), n, columns);
                        added += n;
                        if (added + rows > kRowsInFloat) flush();
                      }
                      flush();
                    });
  const double divisor = c.attr<bool>("mean") ? static_cast<double>(d.outer) : 1.0;
  for (std::int64_t i = 0; i < columns; ++i) {
    const auto value = static_cast<float>(totals[static_cast<std::size_t>(i)] / divisor);
    if (out.dtype() == DType::kFloat) {
      out.data<float>()[i] = value;
    } else {
      out.data<BFloat16>()[i] = BFloat16(value);
    }
  }
}

constexpr DTypeSet kTypes{DType::kFloat, DType::kBFloat16};

const KernelRegistration kElementwise{{.op = "_FusedElementwise",
                                       .name = "blocks",
                                       .types = {{"T", kTypes}},
                                       .run = fused_elementwise}};
const KernelRegistration kSum{
    {.op = "_FusedSum", .name = "blocks", .types = {{"T", kTypes}}, .run = fused_sum}};

}  // namespace
}  // namespace tandem::cpu
