// Fourier transforms over the last axes, on KissFFT. Lines of float are transformed in double:
// its float twiddle factors would cost digits.

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include <kissfft/kissfft.hh>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/int_input.h"

namespace tandem::cpu {
namespace {

using Complex = std::complex<double>;

double line_cost(std::int64_t n) {
  return 5.0 * static_cast<double>(n) * std::log2(static_cast<double>(n) + 2);
}

// Calls f(fft, from, to) for pieces of lines: a transform of n and two lines of memory.
template <class F>
void for_each_line(IntraOpPool& pool, std::int64_t lines, std::int64_t n, bool inverse, F f) {
  pool.parallel_for(lines, line_cost(n), [&](std::int64_t begin, std::int64_t end) {
    const kissfft<double> fft(static_cast<std::size_t>(n), inverse);
    std::vector<Complex> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n));
    for (std::int64_t line = begin; line < end; ++line) f(line, fft, from.data(), to.data());
  });
}

// One axis of size n in place; `inner` elements lie between its elements.
template <class R>
void transform_axis(IntraOpPool& pool, std::complex<R>* data, std::int64_t outer, std::int64_t n,
                    std::int64_t inner, bool inverse, double scale) {
  if (n == 1 || outer * n * inner == 0) return;
  for_each_line(pool, outer * inner, n, inverse,
                [&](std::int64_t line, const kissfft<double>& fft, Complex* from, Complex* to) {
                  std::complex<R>* at = data + line / inner * n * inner + line % inner;
                  for (std::int64_t i = 0; i < n; ++i) from[i] = Complex(at[i * inner]);
                  fft.transform(from, to);
                  for (std::int64_t i = 0; i < n; ++i) {
                    at[i * inner] = std::complex<R>(to[i] * scale);
                  }
                });
}

// The last `rank` axes of a value of `shape`, the others as one.
struct Block {
  std::int64_t batch = 1;
  std::int64_t dims[3] = {1, 1, 1};  // the transformed ones last

  Block(const Shape& shape, int rank) : batch(shape.product(0, shape.rank() - rank)) {
    for (int i = 0; i < rank; ++i) dims[3 - rank + i] = shape[shape.rank() - rank + i];
  }
  std::int64_t size() const { return batch * dims[0] * dims[1] * dims[2]; }
};

// The beginning of each axis of `from` that fits into `to`.
template <class From, class To>
void crop(const From* from, const Block& a, To* to, const Block& b) {
  const std::int64_t n = std::min(a.dims[2], b.dims[2]);
  for (std::int64_t k = 0; k < b.batch; ++k) {
    for (std::int64_t i = 0; i < b.dims[0]; ++i) {
      for (std::int64_t j = 0; j < b.dims[1]; ++j) {
        const From* x = from + ((k * a.dims[0] + i) * a.dims[1] + j) * a.dims[2];
        To* y = to + ((k * b.dims[0] + i) * b.dims[1] + j) * b.dims[2];
        for (std::int64_t l = 0; l < n; ++l) y[l] = To(x[l]);
      }
    }
  }
}

// All axes but the last, which may be the only one.
template <class R>
void transform_outer_axes(IntraOpPool& pool, std::complex<R>* data, const Block& b, bool inverse,
                          double scale) {
  transform_axis(pool, data, b.batch * b.dims[0], b.dims[1], b.dims[2], inverse, scale);
  transform_axis(pool, data, b.batch, b.dims[0], b.dims[1] * b.dims[2], inverse, 1);
}

void check_rank(const Array& x, int rank) {
  if (x.rank() < rank) {
    throw InvalidArgumentError(
        cat("Input must have rank of at least ", rank, " but got: ", x.shape()));
  }
}

template <class R, int kRank, bool kInverse>
void complex_transform(KernelContext& c) {
  const Array& x = c.input(0);
  check_rank(x, kRank);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  auto* data = out.data<std::complex<R>>();
  const auto* from = x.data<std::complex<R>>();
  if (from != data) std::copy(from, from + x.num_elements(), data);
  if (x.num_elements() == 0) return;
  const Block b(x.shape(), kRank);
  double scale = kInverse ? 1 / static_cast<double>(b.dims[0] * b.dims[1] * b.dims[2]) : 1;
  if (b.dims[2] == 1) {  // axes of one element are passed over, and their scale is 1
    if (b.dims[1] == 1) {
      return transform_axis(c.intra_op(), data, b.batch, b.dims[0], 1, kInverse, scale);
    }
    transform_axis(c.intra_op(), data, b.batch * b.dims[0], b.dims[1], 1, kInverse, scale);
    return transform_axis(c.intra_op(), data, b.batch, b.dims[0], b.dims[1], kInverse, 1);
  }
  transform_axis(c.intra_op(), data, b.batch * b.dims[0] * b.dims[1], b.dims[2], 1, kInverse,
                 scale);
  transform_outer_axes(c.intra_op(), data, b, kInverse, 1);
}

// The shape of the real side of a real transform, with the lengths of input 1 in its last axes;
// checks that the input is long enough.
template <int kRank, bool kToReal>
Shape real_side(KernelContext& c) {
  const Array& x = c.input(0);
  check_rank(x, kRank);
  const Array& lengths = c.input(1);
  if (lengths.rank() != 1 || lengths.num_elements() != kRank) {
    throw InvalidArgumentError(
        cat("fft_length must have shape [", kRank, "] but has ", lengths.shape()));
  }
  const IntInput n(lengths, "fft_length");
  Shape shape = x.shape();
  for (int i = 0; i < kRank; ++i) {
    if (n[i] < 0) {
      throw InvalidArgumentError(cat("fft_length[", i, "] must be >= 0, but got: ", n[i]));
    }
    const int axis = x.rank() - kRank + i;
    const std::int64_t needed = kToReal && i == kRank - 1 ? n[i] / 2 + 1 : n[i];
    if (x.shape()[axis] != 0 && x.shape()[axis] < needed) {
      throw InvalidArgumentError(cat("Input dimension ", axis, " must have length of at least ",
                                     needed, " but got: ", x.shape()[axis]));
    }
    shape.set_dim(axis, n[i]);
  }
  return shape;
}

Shape half_of(Shape shape) {
  const int last = shape.rank() - 1;
  if (shape[last] > 0) shape.set_dim(last, shape[last] / 2 + 1);
  return shape;
}

template <class R, int kRank>
void real_to_complex(KernelContext& c) {
  const Array& x = c.input(0);
  const Shape real = real_side<kRank, false>(c);
  Array& out = c.allocate_output(0, half_of(real));
  auto* data = out.data<std::complex<R>>();
  if (x.num_elements() == 0) std::fill(data, data + out.num_elements(), std::complex<R>(0));
  if (x.num_elements() == 0 || out.num_elements() == 0) return;
  const Block from(x.shape(), kRank), whole(real, kRank), half(out.shape(), kRank);
  const std::int64_t n = whole.dims[2], m = half.dims[2];
  const std::int64_t rows = whole.batch * whole.dims[0] * whole.dims[1];
  for_each_line(
      c.intra_op(), rows, n, false,
      [&](std::int64_t row, const kissfft<double>& fft, Complex* line, Complex* spectrum) {
        const std::int64_t j = row % whole.dims[1];
        const std::int64_t i = row / whole.dims[1] % whole.dims[0];
        const std::int64_t k = row / whole.dims[1] / whole.dims[0];
        const R* at = x.data<R>() + ((k * from.dims[0] + i) * from.dims[1] + j) * from.dims[2];
        for (std::int64_t l = 0; l < n; ++l) line[l] = static_cast<double>(at[l]);
        fft.transform(line, spectrum);
        for (std::int64_t l = 0; l < m; ++l) data[row * m + l] = std::complex<R>(spectrum[l]);
      });
  transform_outer_axes(c.intra_op(), data, half, false, 1);
}

template <class R, int kRank>
void complex_to_real(KernelContext& c) {
  const Array& x = c.input(0);
  const Shape real = real_side<kRank, true>(c);
  Array& out = c.allocate_output(0, real);
  R* to = out.data<R>();
  if (x.num_elements() == 0) std::fill(to, to + out.num_elements(), R(0));
  if (x.num_elements() == 0 || out.num_elements() == 0) return;
  const Block from(x.shape(), kRank), half(half_of(real), kRank), whole(real, kRank);
  std::vector<std::complex<R>> spectrum(static_cast<std::size_t>(half.size()));
  crop(x.data<std::complex<R>>(), from, spectrum.data(), half);
  transform_outer_axes(c.intra_op(), spectrum.data(), half, true, 1);
  const std::int64_t n = whole.dims[2], m = half.dims[2];
  const double scale = 1 / static_cast<double>(whole.dims[0] * whole.dims[1] * n);
  for_each_line(c.intra_op(), half.batch * half.dims[0] * half.dims[1], n, true,
                [&](std::int64_t row, const kissfft<double>& fft, Complex* line, Complex* values) {
                  const std::complex<R>* at = spectrum.data() + row * m;
                  line[0] = static_cast<double>(at[0].real());
                  for (std::int64_t l = 1; l < m; ++l) {
                    line[l] = Complex(at[l]);
                    line[n - l] = std::conj(line[l]);
                  }
                  if (n % 2 == 0) line[n / 2] = static_cast<double>(at[n / 2].real());
                  fft.transform(line, values);
                  for (std::int64_t l = 0; l < n; ++l) {
                    to[row * n + l] = static_cast<R>(values[l].real() * scale);
                  }
                });
}

constexpr TypeConstraint kComplex64{"Tcomplex", {DType::kComplex64}};
constexpr TypeConstraint kComplex128{"Tcomplex", {DType::kComplex128}};
constexpr TypeConstraint kFloat{"Treal", {DType::kFloat}};
constexpr TypeConstraint kDouble{"Treal", {DType::kDouble}};

template <int kRank>
struct Kernels {
  Kernels(const char* fft, const char* ifft, const char* rfft, const char* irfft)
      : all{
            KernelRegistration(
                {.op = fft, .types = {kComplex64}, .run = complex_transform<float, kRank, false>}),
            KernelRegistration({.op = fft,
                                .types = {kComplex128},
                                .run = complex_transform<double, kRank, false>}),
            KernelRegistration(
                {.op = ifft, .types = {kComplex64}, .run = complex_transform<float, kRank, true>}),
            KernelRegistration({.op = ifft,
                                .types = {kComplex128},
                                .run = complex_transform<double, kRank, true>}),
            KernelRegistration(
                {.op = rfft, .types = {kFloat, kComplex64}, .run = real_to_complex<float, kRank>}),
            KernelRegistration({.op = rfft,
                                .types = {kDouble, kComplex128},
                                .run = real_to_complex<double, kRank>}),
            KernelRegistration(
                {.op = irfft, .types = {kFloat, kComplex64}, .run = complex_to_real<float, kRank>}),
            KernelRegistration({.op = irfft,
                                .types = {kDouble, kComplex128},
                                .run = complex_to_real<double, kRank>}),
        } {}
  KernelRegistration all[8];
};
const Kernels<1> kOne("FFT", "IFFT", "RFFT", "IRFFT");
const Kernels<2> kTwo("FFT2D", "IFFT2D", "RFFT2D", "IRFFT2D");
const Kernels<3> kThree("FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D");

}  // namespace
}  // namespace tandem::cpu
