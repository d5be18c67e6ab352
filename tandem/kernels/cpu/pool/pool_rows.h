#pragma once

#include "tandem/kernels/cpu/pool/pool_geometry.h"

// Pooling of floats with the channels in vectors, compiled for each kind of processor. Works on
// output rows [rows.begin, rows.end) of one image, unless said otherwise.

namespace tandem::cpu {

/// Adds each window's gradient to its first largest element in `dx`, which the caller has cleared;
/// windows that do not overlap may instead set what they cover (`disjoint`).
void max_pool_grad_rows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                        Span rows, bool disjoint);

}  // namespace tandem::cpu
