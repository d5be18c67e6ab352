#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// The two buffers of transforms of `lanes` lines of `elements` complex numbers.
class FftBuffers {
 public:
  FftBuffers(const KernelContext& c, std::int64_t elements, std::int64_t lanes)
      : size_((2 * elements * lanes + 7) / 8 * 8),
        memory_(c.allocate_temp(DType::kDouble, Shape{2 * size_})),
        a_(memory_.data<double>()) {}
  double* a() const { return a_; }
  double* b() const { return a_ + size_; }
  /// Nothing in lanes that no line is in: what was there before might be slow to compute with.
  void clear() const { std::fill(a_, a_ + 2 * size_, 0.0); }

 private:
  std::int64_t size_;
  Array memory_;
  double* a_;
};

}  // namespace tandem::cpu
