#pragma once

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/pool/pool3d_rows.h"
#include "tandem/kernels/cpu/pool/pool_geometry.h"

// Pooling of floating values on all threads; an image is a volume of one plane. Half and bfloat16
// go through float. `out` has been allocated and may be empty.

namespace tandem::cpu {

VolumePool volume_of(const PoolGeometry& images);

void pool_largest(KernelContext& c, const VolumePool& p, const Array& in, Array& out);
void pool_means(KernelContext& c, const VolumePool& p, const Array& in, Array& out);
void pool_means_grad(KernelContext& c, const VolumePool& p, const Array& gradient, Array& out);
/// Every finite element within 1e-5 of the largest of its window gets the window's gradient.
/// Not of double.
void pool_largest_grad(KernelContext& c, const VolumePool& p, const Array& in, const Array& most,
                       const Array& gradient, Array& out);

}  // namespace tandem::cpu
