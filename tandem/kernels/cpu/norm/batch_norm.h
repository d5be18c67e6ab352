#pragma once

#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"

// What batch normalisation and its gradient ask of their inputs.

namespace tandem::cpu {

inline constexpr DTypeSet kBatchNormTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};
inline constexpr double kBatchNormCost = 0.5;  // ns an element

inline void require_image(const Shape& shape, const std::string& format) {
  if (shape.rank() != static_cast<int>(format.size())) {
    throw InvalidArgumentError(
        cat("input must be ", format.size(), "-dimensional (", format, "), but has shape ", shape));
  }
}

inline void require_vector(const KernelContext& c, int i, std::string_view name) {
  if (c.input(i).rank() != 1) {
    throw InvalidArgumentError(
        cat(name, " must be 1-dimensional, but has shape ", c.input(i).shape()));
  }
}

inline void require_channels(const KernelContext& c, int i, std::int64_t channels,
                             std::string_view name) {
  if (c.input(i).num_elements() != channels) {
    throw InvalidArgumentError(
        cat(name, " must have the same number of elements as the channels of x, got ",
            c.input(i).num_elements(), " and ", channels));
  }
}

}  // namespace tandem::cpu
