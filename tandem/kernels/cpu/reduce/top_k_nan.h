#pragma once

#include <cstdint>
#include <vector>

namespace tandem::cpu {

/// The places of the k greatest of a row that holds NaNs, in the order in which TensorFlow's CPU
/// kernel has them. NaN is neither less nor greater than anything, so that the order follows from
/// the algorithm: a maximum taken `lanes` elements at a time for k = 1, a sort for the whole row, a
/// heap for less of it.
void top_k_with_nans(const std::vector<double>& row, std::int64_t k, std::int64_t lanes,
                     std::int64_t* to);

}  // namespace tandem::cpu
