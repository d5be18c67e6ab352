// Long lines as matrices: their columns are transformed, many at a time, turned by their roots, and
// then their rows.

#include "tandem/kernels/cpu/fft/fft_long.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tandem/kernels/cpu/fft/fft_buffers.h"
#include "tandem/kernels/cpu/fft/fft_lines.h"

namespace tandem::cpu {
namespace {

using Complex = std::complex<double>;

// std::complex's product looks after infinities, at a price.
Complex product(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// All n roots of unity as products of two out of some √n.
class Roots {
 public:
  explicit Roots(std::int64_t n)
      : shift_(std::bit_width(static_cast<std::uint64_t>(n)) / 2),
        mask_((std::int64_t{1} << shift_) - 1) {
    for (std::int64_t k = 0; k <= mask_; ++k) near_.push_back(root_of_unity(k, n));
    for (std::int64_t k = 0; k < n; k += mask_ + 1) far_.push_back(root_of_unity(k, n));
  }
  Complex operator[](std::int64_t k) const {
    return product(far_[static_cast<std::size_t>(k >> shift_)],
                   near_[static_cast<std::size_t>(k & mask_)]);
  }

 private:
  int shift_;
  std::int64_t mask_;
  std::vector<Complex> near_, far_;
};

// Calls f(first line, lines, buffers) for all lines, as many as there are lanes at a time.
template <class F>
void for_each_bundle(KernelContext& c, std::int64_t lines, std::int64_t n, F f) {
  const std::int64_t lanes = fft_lanes();
  const double cost = 2.0 * static_cast<double>(lanes * n) * std::log2(static_cast<double>(n) + 2);
  c.intra_op().parallel_for(
      (lines + lanes - 1) / lanes, cost, [&](std::int64_t begin, std::int64_t end) {
        const FftBuffers buffers(c, n, lanes);
        for (std::int64_t i = begin * lanes; i < std::min(end * lanes, lines); i += lanes) {
          if (lines - i < lanes) buffers.clear();
          f(i, std::min(lanes, lines - i), buffers);
        }
      });
}

void transform(KernelContext& c, std::int64_t n, const Complex* line, Complex* out,
               Complex* between) {
  std::int64_t rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % rows != 0) --rows;
  const std::int64_t columns = n / rows;
  const auto down = fft_plan(rows), across = fft_plan(columns);
  const Roots roots(n);
  const std::int64_t lanes = fft_lanes();
  for_each_bundle(c, columns, rows,
                  [&](std::int64_t first, std::int64_t count, const FftBuffers& x) {
                    for (std::int64_t i = 0; i < rows; ++i) {
                      const Complex* from = line + i * columns + first;
                      double* to = x.a() + 2 * lanes * i;
                      for (std::int64_t k = 0; k < count; ++k) {
                        to[k] = from[k].real();
                        to[lanes + k] = from[k].imag();
                      }
                    }
                    const double* result = fft_run(*down, x.a(), x.b());
                    for (std::int64_t i = 0; i < rows; ++i) {
                      const double* from = result + 2 * lanes * i;
                      Complex* to = between + i * columns + first;
                      for (std::int64_t k = 0; k < count; ++k) {
                        to[k] = product({from[k], from[lanes + k]}, roots[i * (first + k)]);
                      }
                    }
                  });
  for_each_bundle(c, rows, columns,
                  [&](std::int64_t first, std::int64_t count, const FftBuffers& x) {
                    for (std::int64_t i = 0; i < columns; ++i) {
                      const Complex* from = between + first * columns + i;
                      double* to = x.a() + 2 * lanes * i;
                      for (std::int64_t k = 0; k < count; ++k) {
                        to[k] = from[k * columns].real();
                        to[lanes + k] = from[k * columns].imag();
                      }
                    }
                    const double* result = fft_run(*across, x.a(), x.b());
                    for (std::int64_t i = 0; i < columns; ++i) {
                      const double* from = result + 2 * lanes * i;
                      Complex* to = out + i * rows + first;
                      for (std::int64_t k = 0; k < count; ++k) to[k] = {from[k], from[lanes + k]};
                    }
                  });
}

Complex swapped(const Complex& x) { return {x.imag(), x.real()}; }

// Bluestein's algorithm, as in FftPlan.
void convolve(KernelContext& c, std::int64_t n, Complex* line) {
  const std::int64_t m = fft_good_size(2 * n - 1);
  const auto size = static_cast<std::size_t>(m);
  std::vector<Complex> chirp(static_cast<std::size_t>(n)), x(size), filter(size), other(size);
  const Roots roots(2 * n);
  for (std::int64_t k = 0, square = 0; k < n; ++k) {
    const Complex root = roots[square];
    const auto at = static_cast<std::size_t>(k);
    chirp[at] = root;
    x[at] = product(line[k], root);
    filter[at] = filter[k == 0 ? 0 : size - at] = std::conj(root);
    square = (square + 2 * k + 1) % (2 * n);
  }
  transform(c, m, filter.data(), filter.data(), other.data());
  transform(c, m, x.data(), x.data(), other.data());
  for (std::size_t k = 0; k < size; ++k) x[k] = swapped(product(x[k], filter[k]));
  transform(c, m, x.data(), x.data(), other.data());
  const double scale = 1 / static_cast<double>(m);
  for (std::int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    line[k] = product(swapped(x[at]) * scale, chirp[at]);
  }
}

}  // namespace

bool fft_is_long(std::int64_t n, std::int64_t lines) {
  return n > 8192 || (lines <= 2 && n >= 1024 && fft_has_passes(n));
}

void fft_long(KernelContext& c, std::int64_t n, Complex* line) {
  if (!fft_has_passes(n)) return convolve(c, n, line);
  std::vector<Complex> between(static_cast<std::size_t>(n));
  transform(c, n, line, line, between.data());
}

}  // namespace tandem::cpu
