// Fourier transforms over the last axes. Lines of float are transformed in double. A transform
// back is one forwards with real and imaginary parts swapped before and after it.

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/fft/fft_buffers.h"
#include "tandem/kernels/cpu/fft/fft_lines.h"
#include "tandem/kernels/cpu/fft/fft_long.h"

namespace tandem::cpu {
namespace {

// Lines in the making, one to a lane: parts(i) are the real parts of their elements i, followed by
// the imaginary ones at + lanes.
struct Lines {
  std::int64_t first, count, lanes;
  double* data;

  double* parts(std::int64_t i) const { return data + 2 * lanes * i; }
  Lines at(double* other) const { return {first, count, lanes, other}; }
};

// Calls load(lines), transforms them and calls store(lines, memory for as many again), for all
// lines of n elements. There is room for `extra` elements more.
template <class Load, class Store>
void transform_lines(KernelContext& c, std::int64_t lines, std::int64_t n, std::int64_t extra,
                     Load load, Store store) {
  if (fft_is_long(n, lines)) {
    const FftBuffers buffers(c, n + extra, 1);
    for (std::int64_t line = 0; line < lines; ++line) {
      const Lines one{line, 1, 1, buffers.a()};
      load(one, buffers.b());
      fft_long(c, n, reinterpret_cast<std::complex<double>*>(one.data));
      store(one, buffers.b());
    }
    return;
  }
  const auto plan = fft_plan(n);
  const std::int64_t lanes = fft_lanes(), size = plan->buffer() + extra;
  const double cost =
      static_cast<double>(plan->buffer() * lanes) * (3 + std::log2(static_cast<double>(n)));
  c.intra_op().parallel_for(
      (lines + lanes - 1) / lanes, cost, [&](std::int64_t begin, std::int64_t end) {
        const FftBuffers buffers(c, size, lanes);
        for (std::int64_t i = begin * lanes; i < std::min(end * lanes, lines); i += lanes) {
          Lines some{i, std::min(lanes, lines - i), lanes, buffers.a()};
          if (some.count < lanes) buffers.clear();
          load(some, buffers.b());
          some.data = fft_run(*plan, buffers.a(), buffers.b());
          store(some, some.data == buffers.a() ? buffers.b() : buffers.a());
        }
      });
}

// Where complex lines are: elements `step` apart, in units of R.
template <class R>
struct Place {
  R* data;
  std::int64_t n, step;

  R* line(std::int64_t i) const { return data + (i / (step / 2) * n * step) + i % (step / 2) * 2; }
};

constexpr int kMaxLanes = 8;

template <class R>
void load_complex(const Lines& lines, const Place<const R>& from, bool swap) {
  const R* at[kMaxLanes];
  for (std::int64_t k = 0; k < lines.count; ++k) at[k] = from.line(lines.first + k);
  const std::int64_t re = swap ? lines.lanes : 0, im = swap ? 0 : lines.lanes;
  for (std::int64_t i = 0; i < from.n; ++i) {
    double* to = lines.parts(i);
    for (std::int64_t k = 0; k < lines.count; ++k) {
      const R* value = at[k] + i * from.step;
      to[re + k] = static_cast<double>(value[0]);
      to[im + k] = static_cast<double>(value[1]);
    }
  }
}

template <class R>
void store_complex(const Lines& lines, const Place<R>& place, bool swap, double scale) {
  R* at[kMaxLanes];
  for (std::int64_t k = 0; k < lines.count; ++k) at[k] = place.line(lines.first + k);
  const std::int64_t re = swap ? lines.lanes : 0, im = swap ? 0 : lines.lanes;
  for (std::int64_t i = 0; i < place.n; ++i) {
    const double* from = lines.parts(i);
    for (std::int64_t k = 0; k < lines.count; ++k) {
      R* value = at[k] + i * place.step;
      value[0] = static_cast<R>(from[re + k] * scale);
      value[1] = static_cast<R>(from[im + k] * scale);
    }
  }
}

// One axis of size n in place; `inner` elements lie between its elements.
template <class R>
void transform_axis(KernelContext& c, std::complex<R>* data, std::int64_t outer, std::int64_t n,
                    std::int64_t inner, bool inverse, double scale) {
  if (n == 1 || outer * n * inner == 0) return;
  R* at = reinterpret_cast<R*>(data);
  transform_lines(
      c, outer * inner, n, 0,
      [&](const Lines& lines, double*) {
        load_complex<R>(lines, {at, n, 2 * inner}, inverse);
      },
      [&](const Lines& lines, double*) {
        store_complex<R>(lines, {at, n, 2 * inner}, inverse, scale);
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
void transform_outer_axes(KernelContext& c, std::complex<R>* data, const Block& b, bool inverse,
                          double scale) {
  transform_axis(c, data, b.batch * b.dims[0], b.dims[1], b.dims[2], inverse, scale);
  transform_axis(c, data, b.batch, b.dims[0], b.dims[1] * b.dims[2], inverse, 1);
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
      return transform_axis(c, data, b.batch, b.dims[0], 1, kInverse, scale);
    }
    transform_axis(c, data, b.batch * b.dims[0], b.dims[1], 1, kInverse, scale);
    return transform_axis(c, data, b.batch, b.dims[0], b.dims[1], kInverse, 1);
  }
  transform_axis(c, data, b.batch * b.dims[0] * b.dims[1], b.dims[2], 1, kInverse, scale);
  transform_outer_axes(c, data, b, kInverse, 1);
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

// Real lines, which row_of(line) gives, to their spectra up to n / 2. An even number of elements
// is transformed as half as many complex ones.
template <class R, class RowOf>
void real_lines(KernelContext& c, std::int64_t lines, std::int64_t n, R* spectra, RowOf row_of) {
  const std::int64_t m = n / 2 + 1;
  const bool even = n % 2 == 0;
  const auto roots = even ? fft_half_roots(n) : nullptr;
  transform_lines(
      c, lines, even ? n / 2 : n, 1,
      [&](const Lines& x, double*) {
        for (std::int64_t k = 0; k < x.count; ++k) {
          const R* row = row_of(x.first + k);
          for (std::int64_t i = 0; i < (even ? n / 2 : n); ++i) {
            double* to = x.parts(i) + k;
            to[0] = static_cast<double>(even ? row[2 * i] : row[i]);
            to[x.lanes] = even ? static_cast<double>(row[2 * i + 1]) : 0;
          }
        }
      },
      [&](const Lines& x, double* other) {
        if (even) fft_split(n, roots->data(), x.lanes, x.data, other);
        store_complex<R>(even ? x.at(other) : x, {spectra, m, 2}, false, 1);
      });
}

// The reverse, scaled.
template <class R>
void real_lines_back(KernelContext& c, std::int64_t lines, std::int64_t n, const R* spectra, R* to,
                     double scale) {
  const std::int64_t m = n / 2 + 1;
  const bool even = n % 2 == 0;
  const auto roots = even ? fft_half_roots(n) : nullptr;
  transform_lines(
      c, lines, even ? n / 2 : n, 1,
      [&](const Lines& x, double* other) {
        const Lines half = even ? x.at(other) : x;
        load_complex<R>(half, {spectra, m, 2}, !even);
        // What should be real is taken so.
        double* first = half.parts(0);
        if (!even) {
          std::fill(first, first + x.lanes, 0.0);
          for (std::int64_t i = 1; i < m; ++i) {
            for (std::int64_t k = 0; k < x.lanes; ++k) {
              x.parts(n - i)[k] = -x.parts(i)[k];
              x.parts(n - i)[x.lanes + k] = x.parts(i)[x.lanes + k];
            }
          }
          return;
        }
        double* last = half.parts(n / 2);
        std::fill(first + x.lanes, first + 2 * x.lanes, 0.0);
        std::fill(last + x.lanes, last + 2 * x.lanes, 0.0);
        fft_merge(n, roots->data(), x.lanes, half.data, x.data);
      },
      [&](const Lines& x, double*) {
        for (std::int64_t k = 0; k < x.count; ++k) {
          R* row = to + (x.first + k) * n;
          for (std::int64_t i = 0; i < (even ? n / 2 : n); ++i) {
            const double* from = x.parts(i) + k;
            if (even) {
              row[2 * i] = static_cast<R>(from[x.lanes] * scale);
              row[2 * i + 1] = static_cast<R>(from[0] * scale);
            } else {
              row[i] = static_cast<R>(from[x.lanes] * scale);
            }
          }
        }
      });
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
  const std::int64_t n = whole.dims[2];
  const std::int64_t rows = whole.batch * whole.dims[0] * whole.dims[1];
  real_lines(c, rows, n, reinterpret_cast<R*>(data), [&](std::int64_t row) {
    const std::int64_t j = row % whole.dims[1];
    const std::int64_t i = row / whole.dims[1] % whole.dims[0];
    const std::int64_t k = row / whole.dims[1] / whole.dims[0];
    return x.data<R>() + ((k * from.dims[0] + i) * from.dims[1] + j) * from.dims[2];
  });
  transform_outer_axes(c, data, half, false, 1);
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
  transform_outer_axes(c, spectrum.data(), half, true, 1);
  const double scale = 1 / static_cast<double>(whole.dims[0] * whole.dims[1] * whole.dims[2]);
  real_lines_back(c, half.batch * half.dims[0] * half.dims[1], whole.dims[2],
                  reinterpret_cast<const R*>(spectrum.data()), to, scale);
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
