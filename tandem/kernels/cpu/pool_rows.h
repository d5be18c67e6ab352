#pragma once

#include "tandem/kernels/cpu/pool_geometry.h"

// Pooling of floats with the channels in vectors, compiled for each kind of processor. Works on
// output rows [rows.begin, rows.end) of one image, unless said otherwise.

namespace tandem::cpu {

/// `image` and `out` are the beginnings of the image and of its windows.
void max_pool_rows(const PoolGeometry& g, const float* image, float* out, Span rows);

/// Adds each window's gradient to its first largest element in `dx`, which the caller has cleared;
/// windows that do not overlap may instead set what they cover (`disjoint`).
void max_pool_grad_rows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                        Span rows, bool disjoint);

/// Means of what the windows cover.
void avg_pool_rows(const PoolGeometry& g, const float* image, float* out, Span rows);

/// Gives each element of input rows [rows.begin, rows.end) its shares of the gradients of the
/// windows that cover it.
void avg_pool_grad_rows(const PoolGeometry& g, const float* gradient, float* dx, Span rows);

}  // namespace tandem::cpu
