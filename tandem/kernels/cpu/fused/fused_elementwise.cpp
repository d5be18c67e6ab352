// _FusedElementwise, _FusedSum and _FusedElementwiseSums.

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/fused/fused_program.h"
#include "tandem/kernels/cpu/norm/channel_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/support/streaming_store.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;
constexpr DTypeSet kTypes{DType::kFloat, DType::kHalf, DType::kBFloat16};

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
    if (!kTypes.contains(c.input(i).dtype())) {
      throw InvalidArgumentError(
          cat("Input ", i, " must be float, half or bfloat16, not ", c.input(i).dtype(), "."));
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

// The output, in the memory of an input if there is one that is not needed any more.
Array& output_for(KernelContext& c, const Shape& shape) {
  int reused = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).dtype() == c.output_dtype(0) && c.input(i).shape() == shape &&
        c.may_overwrite_input(i)) {
      reused = i;
      break;
    }
  }
  return c.reuse_or_allocate_output(reused, 0, shape);
}

template <class T>
void write_rounded(StreamingStore* past, const float* values, T* to, std::int64_t n) {
  if (!past) return from_floats(values, to, n);
  T rounded[kBlock];
  for (std::int64_t done = 0; done < n; done += kBlock) {
    const std::int64_t m = std::min(kBlock, n - done);
    from_floats(values + done, rounded, m);
    past->write(to + done, rounded, static_cast<std::size_t>(m) * sizeof(T));
  }
}

// A block of the result, from floats.
void write_block(StreamingStore* past, const float* values, Array& out, std::int64_t begin,
                 std::int64_t n) {
  if (out.dtype() == DType::kFloat) {
    float* const to = out.data<float>() + begin;
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
    if (past) {
      past->write(to, values, bytes);
    } else {
      std::memcpy(to, values, bytes);
    }
    return;
  }
  if (out.dtype() == DType::kHalf) return write_rounded(past, values, out.data<Half>() + begin, n);
  write_rounded(past, values, out.data<BFloat16>() + begin, n);
}

void fused_elementwise(KernelContext& c) {
  const Ref<FusedProgram> program = FusedProgram::of(c);
  const Shape shape = common_shape(c);
  Array& out = output_for(c, shape);
  const std::vector<BlockSource> sources = sources_of(c, shape, &out);
  const std::int64_t count = out.num_elements();
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  const bool streaming_store = StreamingStore::pays(c, out);
  const bool in_place = out.dtype() == DType::kFloat && !streaming_store;
  c.intra_op().parallel_for(
      blocks, (program->cost() + 0.3) * kBlock, [&](std::int64_t first, std::int64_t last) {
        FusedRun run(*program, sources, kBlock);
        std::optional<StreamingStore> past;
        if (streaming_store) past.emplace();
        float values[kBlock];
        for (std::int64_t b = first; b < last; ++b) {
          const std::int64_t begin = b * kBlock, n = std::min(kBlock, count - begin);
          if (in_place) {
            run.block(begin, n, out.data<float>() + begin);
          } else {
            write_block(past ? &*past : nullptr, run.compute(begin, n, values), out, begin, n);
          }
        }
      });
}

// Sums over rows, of several values side by side: floats are added up over some hundred rows, and
// those sums in double.
class RowSums {
 public:
  /// Sums `count` values with so many columns each, added to `totals`.
  RowSums(std::int64_t count, std::int64_t columns, double* totals)
      : columns_(columns),
        totals_(totals),
        part_(static_cast<std::size_t>(count * columns), 0.0f) {}

  /// In a block: few rows, so that they stay in the nearest cache.
  static std::int64_t rows(std::int64_t columns) {
    return std::min(kRowsInFloat, std::max<std::int64_t>(1, kBlock / columns));
  }
  void add(std::int64_t value, const float* at, std::int64_t rows) {
    sum_rows(at, part_.data() + value * columns_, rows, columns_);
  }
  /// After a block.
  void added(std::int64_t rows) {
    rows_ += rows;
    if (rows_ + this->rows(columns_) > kRowsInFloat) flush();
  }
  void flush() {
    for (std::size_t i = 0; i < part_.size(); ++i) totals_[i] += static_cast<double>(part_[i]);
    std::fill(part_.begin(), part_.end(), 0.0f);
    rows_ = 0;
  }

 private:
  static constexpr std::int64_t kRowsInFloat = 256;
  std::int64_t columns_;
  double* totals_;
  std::vector<float> part_;
  std::int64_t rows_ = 0;
};

void write_sums(const double* totals, double divisor, Array& out) {
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    const auto value = static_cast<float>(totals[i] / divisor);
    if (out.dtype() == DType::kFloat) {
      out.data<float>()[i] = value;
    } else if (out.dtype() == DType::kHalf) {
      out.data<Half>()[i] = Half(value);
    } else {
      out.data<BFloat16>()[i] = BFloat16(value);
    }
  }
}

Shape sums_shape(std::int64_t rank, std::int64_t columns) {
  if (rank < 1 || rank > Shape::kMaxRank)
    throw InvalidArgumentError(cat("A sum cannot have rank ", rank, "."));
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  dims.back() = columns;
  return Shape(dims);
}

Channels rows_and_columns(const Shape& shape) {
  if (shape.rank() < 1) throw InvalidArgumentError("The value must have an axis that stays.");
  return {shape.product(0, shape.rank() - 1), shape[shape.rank() - 1], 1};
}

void fused_sum(KernelContext& c) {
  const Ref<FusedProgram> program = FusedProgram::of(c);
  const Shape shape = common_shape(c);
  const Channels d = rows_and_columns(shape);
  const std::vector<BlockSource> sources = sources_of(c, shape);
  const std::int64_t columns = d.channels;
  Array& out =
      c.allocate_output(0, sums_shape(c.attr<bool>("keep_dims") ? shape.rank() : 1, columns));
  if (columns == 0) return;
  const std::int64_t rows = RowSums::rows(columns);
  std::vector<double> totals(static_cast<std::size_t>(columns));
  Pieces::of(d).sum(c, d, columns, totals.data(),
                    [&](std::int64_t begin, std::int64_t end, double* sums) {
                      FusedRun run(*program, sources, rows * columns);
                      std::vector<float> values(static_cast<std::size_t>(rows * columns));
                      RowSums sum(1, columns, sums);
                      for (std::int64_t row = begin; row < end; row += rows) {
                        const std::int64_t n = std::min(rows, end - row);
                        sum.add(0, run.compute(row * columns, n * columns, values.data()), n);
                        sum.added(n);
                      }
                      sum.flush();
                    });
  write_sums(totals.data(), c.attr<bool>("mean") ? static_cast<double>(d.outer) : 1.0, out);
}

void fused_elementwise_sums(KernelContext& c) {
  const Ref<FusedProgram> program = FusedProgram::of(c);
  const Shape shape = common_shape(c);
  const Channels d = rows_and_columns(shape);
  Array& out = output_for(c, shape);
  const std::vector<BlockSource> sources = sources_of(c, shape, &out);
  const std::int64_t columns = d.channels, count = c.num_outputs() - 1;
  const auto& ranks = c.attr<std::vector<std::int64_t>>("sum_ranks");
  if (ranks.size() != static_cast<std::size_t>(count) ||
      program->results().size() != static_cast<std::size_t>(count) + 1) {
    throw InvalidArgumentError(cat("There are ", count, " sums, but ", ranks.size(),
                                   " `sum_ranks` and ", program->results().size(), " `results`."));
  }
  for (std::int64_t s = 0; s < count; ++s) {
    c.allocate_output(static_cast<int>(s) + 1,
                      sums_shape(ranks[static_cast<std::size_t>(s)], columns));
  }
  if (columns == 0) return;
  const std::int64_t rows = RowSums::rows(columns);
  const bool streaming_store = StreamingStore::pays(c, out);
  std::vector<double> totals(static_cast<std::size_t>(count * columns));
  Pieces::of(d).sum(
      c, d, count * columns, totals.data(),
      [&](std::int64_t begin, std::int64_t end, double* sums) {
        FusedRun run(*program, sources, rows * columns);
        std::vector<float> scratch(static_cast<std::size_t>(rows * columns));
        std::optional<StreamingStore> past;
        if (streaming_store) past.emplace();
        RowSums sum(count, columns, sums);
        for (std::int64_t row = begin; row < end; row += rows) {
          const std::int64_t n = std::min(rows, end - row);
          const std::int64_t at = row * columns, size = n * columns;
          run.compute(at, size);
          for (std::int64_t s = 0; s < count; ++s)
            sum.add(s, run.result(static_cast<std::size_t>(s) + 1, size, scratch.data()), n);
          sum.added(n);
          // Last, since an input may lie there.
          write_block(past ? &*past : nullptr, run.result(0, size, scratch.data()), out, at, size);
        }
        sum.flush();
      });
  for (std::int64_t s = 0; s < count; ++s)
    write_sums(totals.data() + s * columns, 1, c.output(static_cast<int>(s) + 1));
}

const KernelRegistration kElementwise{{.op = "_FusedElementwise",
                                       .name = "blocks",
                                       .types = {{"T", kTypes}},
                                       .run = fused_elementwise}};
const KernelRegistration kSum{
    {.op = "_FusedSum", .name = "blocks", .types = {{"T", kTypes}}, .run = fused_sum}};
const KernelRegistration kElementwiseSums{{.op = "_FusedElementwiseSums",
                                           .name = "blocks",
                                           .types = {{"T", kTypes}, {"Tsum", kTypes}},
                                           .run = fused_elementwise_sums}};

}  // namespace
}  // namespace tandem::cpu
