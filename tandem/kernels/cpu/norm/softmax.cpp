// Softmax and LogSoftmax along the last axis.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/norm/softmax_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class T>
void plain_row(const T* x, T* y, std::int64_t n, bool logarithm) {
  using W = Wide<T>;
  W largest = widen(x[0]);
  for (std::int64_t i = 1; i < n; ++i) largest = std::max(largest, widen(x[i]));
  W sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(widen(x[i]) - largest);
  if (logarithm) {
    const W log_sum = std::log(sum);
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(widen(x[i]) - largest - log_sum);
  } else {
    const W factor = 1 / sum;
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(std::exp(widen(x[i]) - largest) * factor);
    }
  }
}

// The output, or null if it is empty.
Array* output_of(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  if (shape.rank() < 1) {
    throw InvalidArgumentError(cat("logits must have >= 1 dimension, got ", shape));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, shape);
  return out.num_elements() == 0 ? nullptr : &out;
}

template <bool logarithm>
void plain(KernelContext& c) {
  Array* out = output_of(c);
  if (!out) return;
  const std::int64_t columns = out->shape().dim(-1);
  with_floating(out->dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out->data<T>();
    c.intra_op().parallel_for(out->num_elements() / columns, 12.0 * static_cast<double>(columns),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t at = begin * columns; at < end * columns;
                                     at += columns) {
                                  plain_row(x + at, y + at, columns, logarithm);
                                }
                              });
  });
}

template <bool logarithm>
void vectors(KernelContext& c) {
  Array* out = output_of(c);
  if (!out) return;
  const std::int64_t columns = out->shape().dim(-1);
  constexpr auto run_rows = logarithm ? log_softmax_rows : softmax_rows;
  with_type<float, Half, BFloat16>(out->dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out->data<T>();
    // Rows of 16-bit elements become float a few at a time.
    const Channels d{out->num_elements() / columns, columns, 1};
    c.intra_op().parallel_for(d.outer, 20 + 1.5 * static_cast<double>(columns),
                              [&](std::int64_t begin, std::int64_t end) {
                                if constexpr (std::is_same_v<T, float>) {
                                  run_rows(x + begin * columns, y + begin * columns, end - begin,
                                           columns);
                                } else {
                                  Writer<T> block(c, rows_at_once(d) * columns);
                                  in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
                                    float* values = block.place(y + at);
                                    to_floats(x + at, values, rows * columns);
                                    run_rows(values, values, rows, columns);
                                    block.done(y + at, rows * columns);
                                  });
                                }
                              });
  });
}

constexpr DTypeSet kVectorTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};

const KernelRegistration kSoftmax{
    {.op = "Softmax", .types = {{"T", kFloatTypes}}, .run = plain<false>}};
const KernelRegistration kLogSoftmax{
    {.op = "LogSoftmax", .types = {{"T", kFloatTypes}}, .run = plain<true>}};
const KernelRegistration kVectorSoftmax{{.op = "Softmax",
                                         .name = "vectors",
                                         .types = {{"T", kVectorTypes}},
                                         .priority = 10,
                                         .run = vectors<false>}};
const KernelRegistration kVectorLogSoftmax{{.op = "LogSoftmax",
                                            .name = "vectors",
                                            .types = {{"T", kVectorTypes}},
                                            .priority = 10,
                                            .run = vectors<true>}};

}  // namespace
}  // namespace tandem::cpu
