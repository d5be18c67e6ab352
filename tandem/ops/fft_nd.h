#pragma once

#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

/// Fourier transforms over any axes, made of those in tandem/ops/fft_ops.h.
///
/// axes: all by default. fft_length: to which lengths these axes are cut or filled up with zeros
/// first, one each; their own by default. norm: "backward" divides inverse transforms by the number
/// of elements, "forward" the forward ones, "ortho" both by its square root. Sizes must be known.
/// InvalidArgumentError for other words, axes and numbers of lengths.
namespace tandem::signal {

TANDEM_EXPORT Tensor fftnd(const Tensor& input, const IntList& fft_length = {},
                           const IntList& axes = {}, StringView norm = "backward");
TANDEM_EXPORT Tensor ifftnd(const Tensor& input, const IntList& fft_length = {},
                            const IntList& axes = {}, StringView norm = "backward");
/// Takes real values; the last of the axes keeps n / 2 + 1 entries.
TANDEM_EXPORT Tensor rfftnd(const Tensor& input, const IntList& fft_length = {},
                            const IntList& axes = {}, StringView norm = "backward");
/// The reverse of rfftnd. fft_length: of the result, by default even in the last of the axes.
TANDEM_EXPORT Tensor irfftnd(const Tensor& input, const IntList& fft_length = {},
                             const IntList& axes = {}, StringView norm = "backward");

}  // namespace tandem::signal

namespace tandem {

using signal::fftnd;
using signal::ifftnd;
using signal::irfftnd;
using signal::rfftnd;

}  // namespace tandem
