#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/kernels/cpu/conv/conv.h"

// How a convolution is shared out among threads: by images, or by rows of a single one.

namespace tandem::cpu::onednn {

/// A part of a convolution, and at which element its images begin in the whole's.
struct ConvPart {
  ConvCase p;
  std::int64_t input = 0, output = 0;
};

struct ConvGrid {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t parts() const { return batch * rows; }
};

/// The number of parts that are worth a thread of their own; under determinism one that does not
/// depend on the number of threads.
ConvGrid cut_conv(const KernelContext& c, const ConvCase& p, bool rows_too);
ConvPart conv_part(const ConvCase& whole, const ConvGrid& grid, std::int64_t i);

inline const std::byte* element_at(const void* base, std::int64_t element, DType dtype) {
  return static_cast<const std::byte*>(base) +
         element * static_cast<std::int64_t>(dtype_size(dtype));
}
inline std::byte* element_at(void* base, std::int64_t element, DType dtype) {
  return static_cast<std::byte*>(base) + element * static_cast<std::int64_t>(dtype_size(dtype));
}

}  // namespace tandem::cpu::onednn
