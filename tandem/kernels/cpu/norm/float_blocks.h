#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/support/prefetch.h"

// Kernels that calculate in float see rows of any floating type through these, a few rows at a
// time: floats where they lie, half and bfloat16 converted.

namespace tandem::cpu {

// Gives rows as floats: where they lie, or converted. Rows are expected one after the other.
template <class T>
class Reader {
 public:
  Reader(KernelContext& c, std::int64_t block)
      : scratch_(c.allocate_temp(DType::kFloat, Shape{block})) {}
  const float* floats(const T* from, std::int64_t n) {
    prefetch(from + n, static_cast<std::size_t>(n) * sizeof(T));
    to_floats(from, scratch_.data<float>(), n);
    return scratch_.data<float>();
  }

 private:
  Array scratch_;
};
template <>
class Reader<float> {
 public:
  Reader(KernelContext&, std::int64_t) {}
  const float* floats(const float* from, std::int64_t n) {
    prefetch(from + n, static_cast<std::size_t>(n) * sizeof(float));
    return from;
  }
};

// Takes rows as floats to where they belong.
template <class T>
class Writer {
 public:
  Writer(KernelContext& c, std::int64_t block)
      : scratch_(c.allocate_temp(DType::kFloat, Shape{block})) {}
  float* place(T*) { return scratch_.data<float>(); }
  void done(T* to, std::int64_t n) { from_floats(scratch_.data<float>(), to, n); }

 private:
  Array scratch_;
};
template <>
class Writer<float> {
 public:
  Writer(KernelContext&, std::int64_t) {}
  float* place(float* to) { return to; }
  void done(float*, std::int64_t) {}
};

// How many rows are worked on at once.
inline std::int64_t rows_at_once(const Channels& d) {
  return std::max<std::int64_t>(4, 2048 / std::max<std::int64_t>(1, d.row()));
}

// Calls rows(at, count) for rows [begin, end), a few at a time; `at` counts elements.
template <class F>
void in_blocks(const Channels& d, std::int64_t begin, std::int64_t end, F f) {
  const std::int64_t step = rows_at_once(d);
  for (std::int64_t row = begin; row < end; row += step) {
    f(row * d.row(), std::min(step, end - row));
  }
}

// Calls run(offset, channel) for every run of a block in NCHW order.
template <class F>
void for_each_run(const Channels& d, std::int64_t rows, F f) {
  std::int64_t offset = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t channel = 0; channel < d.channels; ++channel, offset += d.inner) {
      f(offset, channel);
    }
  }
}

}  // namespace tandem::cpu
