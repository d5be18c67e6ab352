#pragma once

#include "tandem/kernels/cpu/pool_geometry.h"

// Max pooling of floats with the channels in vectors, compiled for each kind of processor. Works on
// output rows [rows.begin, rows.end) of one image.

namespace tandem::cpu {

/// `image` and `out` are the beginnings of the image and of its windows.
void max_pool_rows(const PoolGeometry& g, const float* image, float* out, Span rows);

/// Adds each window's gradient to its first largest element in `dx`, which the caller has cleared;
/// windows that do not overlap may instead set what they cover (`disjoint`).
void max_pool_grad_rows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                        Span rows, bool disjoint);

}  // namespace tandem::cpu
