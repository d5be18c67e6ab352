#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// `scalar`, of rank 0, times x.
TANDEM_EXPORT Tensor scalar_mul(Operand scalar, const Tensor& x);

namespace math {

using tandem::scalar_mul;

/// log of the beta function of the last axis: Σ lgamma(x) - lgamma(Σ x).
TANDEM_EXPORT Tensor lbeta(const Tensor& x);
/// coeffs[0] x^(n-1) + … + coeffs[n-1], by Horner's rule; zeros for no coefficients.
TANDEM_EXPORT Tensor polyval(const std::vector<Tensor>& coeffs, const Tensor& x);
/// A bool: no element, in row-major order, is smaller (not larger) than the one before.
TANDEM_EXPORT Tensor is_non_decreasing(const Tensor& x);
TANDEM_EXPORT Tensor is_strictly_increasing(const Tensor& x);
/// The share of zeros, a float scalar.
TANDEM_EXPORT Tensor zero_fraction(const Tensor& value);
/// unsorted_segment_sum divided by the roots of the numbers of rows.
TANDEM_EXPORT Tensor unsorted_segment_sqrt_n(const Tensor& data, const Tensor& segment_ids,
                                             const Tensor& num_segments);
/// The k largest (smallest) values along an axis and where they are: exact ones, which TensorFlow's
/// functions of these names may miss on accelerators.
TANDEM_EXPORT TopK approx_max_k(const Tensor& operand, std::int64_t k,
                                std::int64_t reduction_dimension = -1);
TANDEM_EXPORT TopK approx_min_k(const Tensor& operand, std::int64_t k,
                                std::int64_t reduction_dimension = -1);

}  // namespace math
}  // namespace tandem
