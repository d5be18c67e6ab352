#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem::signal {

// Discrete Fourier transforms over the last one, two or three axes. Forward transforms are not
// scaled, inverse ones divide by the number of elements. complex64 and complex128; the real ones
// take or give float and double. All lengths work; those with large prime factors take longer.

TANDEM_EXPORT Tensor fft(Tensor input);
TANDEM_EXPORT Tensor ifft(Tensor input);
TANDEM_EXPORT Tensor fft2d(Tensor input);
TANDEM_EXPORT Tensor ifft2d(Tensor input);
TANDEM_EXPORT Tensor fft3d(Tensor input);
TANDEM_EXPORT Tensor ifft3d(Tensor input);

/// Transforms real values: the result holds the first n / 2 + 1 entries of the last axis, which
/// determine the rest. fft_length: to which lengths the axes are cut or filled up with zeros first;
/// their own by default.
TANDEM_EXPORT Tensor rfft(Tensor input, const IntList& fft_length = {});
TANDEM_EXPORT Tensor rfft2d(Tensor input, const IntList& fft_length = {});
TANDEM_EXPORT Tensor rfft3d(Tensor input, const IntList& fft_length = {});
/// The reverse. fft_length: of the result; by default even in the last axis, 2 * (m - 1) for m
/// entries.
TANDEM_EXPORT Tensor irfft(Tensor input, const IntList& fft_length = {});
TANDEM_EXPORT Tensor irfft2d(Tensor input, const IntList& fft_length = {});
TANDEM_EXPORT Tensor irfft3d(Tensor input, const IntList& fft_length = {});

}  // namespace tandem::signal
