#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

// What a Fourier transform of n elements does, and the numbers that it needs. Plans are kept and
// shared by later calls.

namespace tandem::cpu {

/// exp(-2πi k / n), right to the last digit; 0 <= k <= n.
std::complex<double> root_of_unity(std::int64_t k, std::int64_t n);

/// One step of Stockham's algorithm: `after` transforms of `radix` elements each `before` times.
struct FftPass {
  std::int64_t radix;
  std::int64_t before;
  std::int64_t after;
  std::size_t twiddles;  ///< where in `numbers` those of this pass begin: [radix][after]
  std::size_t roots;     ///< and the roots of unity of an odd radix that has no loop of its own
};

/// A size without large prime factors has passes. Any other is a convolution with a chirp
/// (Bluestein's algorithm) by transforms of a size that has passes.
struct FftPlan {
  explicit FftPlan(std::int64_t size);

  std::int64_t n;
  std::vector<FftPass> passes;
  std::vector<std::complex<double>> numbers;

  std::shared_ptr<const FftPlan> convolution;  ///< null where there are passes
  std::vector<std::complex<double>> chirp;     ///< exp(-πi k² / n)
  std::vector<std::complex<double>> filter;    ///< the transform of the chirp's conjugate, scaled

  /// Elements that the two buffers of a transform have.
  std::int64_t buffer() const { return convolution ? convolution->n : n; }
};

bool fft_has_passes(std::int64_t n);
/// The least size of at least n that only has the factors 2, 3 and 5.
std::int64_t fft_good_size(std::int64_t n);

std::shared_ptr<const FftPlan> fft_plan(std::int64_t n);
/// The roots 0 to n / 2 of n, which real transforms need.
std::shared_ptr<const std::vector<std::complex<double>>> fft_half_roots(std::int64_t n);

}  // namespace tandem::cpu
