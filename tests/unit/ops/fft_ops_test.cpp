// Fourier transforms of lengths that the stored answers do not have: with large prime factors, more
// lines than a vector has lanes, long lines.

#include "tandem/ops/fft_ops.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> values(std::int64_t count) {
  std::vector<Complex> x;
  for (std::int64_t i = 0; i < count; ++i) {
    x.emplace_back(std::sin(static_cast<double>(i * i % 1009)),
                   std::cos(static_cast<double>(3 * i % 101)));
  }
  return x;
}

// Element k of the transform of n elements, by its definition.
Complex element(const Complex* x, std::int64_t n, std::int64_t k) {
  Complex sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += x[i] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * k % n) /
                                      static_cast<double>(n));
  }
  return sum;
}

TEST(Fft, FollowsItsDefinition) {
  for (const std::int64_t n : {49, 61, 67, 77, 134, 1009, 1024, 8193, 8209, 9000}) {
    const std::int64_t lines = n < 100 ? 9 : n < 1024 ? 3 : 1;
    const std::vector<Complex> x = values(lines * n);
    const Array y = signal::fft(Tensor::from(x, {lines, n})).array();
    for (std::int64_t line = 0; line < lines; ++line) {
      for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 3, n - 1}) {
        const Complex wanted = element(x.data() + line * n, n, k);
        EXPECT_LT(std::abs(y.data<Complex>()[line * n + k] - wanted), 1e-9) << n << " " << k;
      }
    }
  }
}

TEST(Fft, BackIsTheInverse) {
  for (const std::int64_t n : {1, 2, 66, 67, 1023, 2048, 8209, 12000}) {
    const std::vector<Complex> x = values(n);
    const Array y = signal::ifft(signal::fft(Tensor::from(x, {n}))).array();
    std::vector<double> real;
    for (const Complex& value : x) real.push_back(value.real());
    const Array z = signal::irfft(signal::rfft(Tensor::from(real, {n})), {n}).array();
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_LT(std::abs(y.data<Complex>()[i] - x[at]), 1e-12) << n << " " << i;
      ASSERT_LT(std::abs(z.data<double>()[i] - real[at]), 1e-12) << n << " " << i;
    }
  }
}

}  // namespace
}  // namespace tandem
