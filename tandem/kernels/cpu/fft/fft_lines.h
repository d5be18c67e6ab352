#pragma once

#include <complex>
#include <cstdint>

#include "tandem/kernels/cpu/fft/fft_plan.h"

// Fourier transforms of as many lines at once as a vector of doubles has lanes, a line to a lane:
// element i is at 2 * lanes * i, the lanes' real parts first and their imaginary ones behind them.
// Compiled for each kind of processor. `lanes` is fft_lanes() or 1.

namespace tandem::cpu {

std::int64_t fft_lanes();

/// Transforms `a` and returns where the result is: `a` or `b`. Both have plan.buffer() elements.
double* fft_run(const FftPlan& plan, double* a, double* b);
/// One line, as complex numbers.
double* fft_run_one(const FftPlan& plan, double* a, double* b);

/// From the transform of n / 2 pairs of real numbers to that of the n: elements 0 to n / 2. n is
/// even.
void fft_split(std::int64_t n, const std::complex<double>* half_roots, std::int64_t lanes,
               const double* pairs, double* out);
/// The reverse, not scaled, with real and imaginary parts swapped, so that the transform forwards
/// becomes the one backwards.
void fft_merge(std::int64_t n, const std::complex<double>* half_roots, std::int64_t lanes,
               const double* in, double* pairs);

}  // namespace tandem::cpu
