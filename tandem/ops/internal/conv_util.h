#pragma once

#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::nn {

/// The attributes that all convolution ops have in common.
AttrMap conv_attrs(Size2D strides, const Padding& padding, const std::string& data_format,
                   Size2D dilations);

/// `size` for height and width and 1 for the other two axes, in the order of the format.
std::vector<std::int64_t> four_sizes(Size2D size, const std::string& data_format);

/// The int32 shape of `x` as a value: a constant where it is known.
Tensor shape_vector(const Tensor& x);

}  // namespace tandem::nn
