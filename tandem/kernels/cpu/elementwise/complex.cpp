// Complex, Real, Imag, Conj, ComplexAbs, Angle.

#include <cmath>
#include <complex>
#include <cstdint>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/broadcast_rows.h"

namespace tandem::cpu {
namespace {

void check_output(const KernelContext& c, DType real, DType complex) {
  if ((real == DType::kFloat) == (complex == DType::kComplex64)) return;
  throw InvalidArgumentError(cat(c.op().name, " does not go between ", real, " and ", complex,
                                 ": float goes with complex64, double with complex128."));
}

template <class R>
void make_as(KernelContext& c) {
  const BroadcastRows<2> rows({&c.input(0).shape(), &c.input(1).shape()});
  Array& out = c.allocate_output(0, rows.shape());
  const R* const re = c.input(0).data<R>();
  const R* const im = c.input(1).data<R>();
  R* const result = out.data<R>();
  rows.run(c.intra_op(), 1.0,
           [=](std::int64_t begin, const auto& from, const auto& step, std::int64_t n) {
             for (std::int64_t i = 0; i < n; ++i) {
               result[2 * (begin + i)] = re[from[0] + i * step[0]];
               result[2 * (begin + i) + 1] = im[from[1] + i * step[1]];
             }
           });
}

void make_complex(KernelContext& c) {
  check_output(c, c.input(0).dtype(), c.output_dtype(0));
  if (c.input(0).dtype() == DType::kFloat)
    make_as<float>(c);
  else
    make_as<double>(c);
}

template <class F, class R>
void to_real_as(KernelContext& c, double cost) {
  const Array& x = c.input(0);
  Array& out = c.allocate_output(0, x.shape());
  const auto* const values = x.data<std::complex<R>>();
  R* const result = out.data<R>();
  c.intra_op().parallel_for(x.num_elements(), cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) result[i] = F::apply(values[i]);
  });
}

struct RealPart {
  static constexpr double kCost = 1;
  template <class R>
  static R apply(const std::complex<R>& x) {
    return x.real();
  }
};
struct ImagPart {
  static constexpr double kCost = 1;
  template <class R>
  static R apply(const std::complex<R>& x) {
    return x.imag();
  }
};
struct Magnitude {
  static constexpr double kCost = 5;
  template <class R>
  static R apply(const std::complex<R>& x) {
    return std::hypot(x.real(), x.imag());
  }
};
struct Angle {
  static constexpr double kCost = 20;
  template <class R>
  static R apply(const std::complex<R>& x) {
    return std::atan2(x.imag(), x.real());
  }
};

template <class F>
void to_real(KernelContext& c) {
  check_output(c, c.output_dtype(0), c.input(0).dtype());
  if (c.output_dtype(0) == DType::kFloat)
    to_real_as<F, float>(c, F::kCost);
  else
    to_real_as<F, double>(c, F::kCost);
}

template <class R>
void conj_as(IntraOpPool& pool, const Array& x, Array& out) {
  const auto* const values = x.data<std::complex<R>>();
  auto* const result = out.data<std::complex<R>>();
  pool.parallel_for(x.num_elements(), 1.0, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) result[i] = std::conj(values[i]);
  });
}

void conj(KernelContext& c) {
  const Array& x = c.input(0);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (x.dtype() == DType::kComplex64)
    conj_as<float>(c.intra_op(), x, out);
  else
    conj_as<double>(c.intra_op(), x, out);
}

const KernelRegistration kComplex{{.op = "Complex", .run = make_complex}};
const KernelRegistration kReal{{.op = "Real", .run = to_real<RealPart>}};
const KernelRegistration kImag{{.op = "Imag", .run = to_real<ImagPart>}};
const KernelRegistration kAbs{{.op = "ComplexAbs", .run = to_real<Magnitude>}};
const KernelRegistration kAngle{{.op = "Angle", .run = to_real<Angle>}};
const KernelRegistration kConj{{.op = "Conj", .types = {{"T", kComplexTypes}}, .run = conj}};

}  // namespace
}  // namespace tandem::cpu
