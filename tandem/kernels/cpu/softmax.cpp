// Softmax and LogSoftmax along the last axis.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

template <class T>
void softmax_row(const T* x, T* y, std::int64_t n, bool logarithm) {
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

void run(KernelContext& c, bool logarithm) {
  const Shape& shape = c.input(0).shape();
  if (shape.rank() < 1) {
    throw InvalidArgumentError(cat("logits must have >= 1 dimension, got ", shape));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, shape);
  if (out.num_elements() == 0) return;
  const std::int64_t columns = shape[shape.rank() - 1];
  with_floating(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out.data<T>();
    c.intra_op().parallel_for(out.num_elements() / columns, 12.0 * static_cast<double>(columns),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t row = begin; row < end; ++row) {
                                  softmax_row(x + row * columns, y + row * columns, columns,
                                              logarithm);
                                }
                              });
  });
}

void softmax(KernelContext& c) { run(c, false); }
void log_softmax(KernelContext& c) { run(c, true); }

const KernelRegistration kSoftmax{{.op = "Softmax", .types = {{"T", kFloatTypes}}, .run = softmax}};
const KernelRegistration kLogSoftmax{
    {.op = "LogSoftmax", .types = {{"T", kFloatTypes}}, .run = log_softmax}};

}  // namespace
}  // namespace tandem::cpu
