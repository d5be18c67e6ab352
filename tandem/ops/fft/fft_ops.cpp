#include "tandem/ops/fft_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

constexpr const char* kForward[] = {"FFT", "FFT2D", "FFT3D"};
constexpr const char* kInverse[] = {"IFFT", "IFFT2D", "IFFT3D"};
constexpr const char* kReal[] = {"RFFT", "RFFT2D", "RFFT3D"};

DType complex_of(DType real) {
  return real == DType::kDouble ? DType::kComplex128 : DType::kComplex64;
}

// The sizes of the last `rank` axes, int32.
Tensor last_sizes(const Tensor& x, int rank) { return index(shape(x), {Slice(-rank, none)}); }

// x with zeros behind the last `rank` axes, which become `sizes` long unless they are longer.
Tensor padded(const Tensor& x, const Tensor& sizes, int rank) {
  const Tensor missing = maximum(sizes - last_sizes(x, rank), Tensor(0));
  const Tensor others = zeros_like(index(shape(x), {Slice(none, -rank)}));
  const Tensor after = concat({others, missing}, 0);
  return pad(x, stack({zeros_like(after), after}, 1));
}

template <int kRank>
void complex_shape(InferenceContext& c) {
  c.require_rank_at_least(0, kRank);
  c.set_output(0, c.input(0));
}

template <int kRank, bool kToReal>
void real_shape(InferenceContext& c) {
  c.require_rank_at_least(0, kRank);
  c.require_rank(1, 1);
  c.merge_dim(c.input(1).dim(0), kRank, "lengths in fft_length");
  PartialShape out = c.input(0);
  if (out.has_rank()) {
    const auto lengths = c.input_ints(1);
    for (int i = 0; i < kRank; ++i) {
      std::int64_t n = lengths ? (*lengths)[static_cast<std::size_t>(i)] : kUnknown;
      if (lengths && n < 0) c.fail(cat("fft_length[", i, "] must be >= 0, but got: ", n));
      if (!kToReal && i == kRank - 1 && n > 0) n = n / 2 + 1;
      out.set_dim(out.rank() - kRank + i, n);
    }
  }
  c.set_output(0, std::move(out));
}

template <int kRank>
Tensor count_of(const Tensor& x, DType dtype) {
  return cast(cast(reduce_prod(last_sizes(x, kRank)), DType::kDouble), dtype);
}

template <int kRank>
void forward_grad(GradientContext& g) {
  g.set(0, op1(kInverse[kRank - 1], {g.grad()}) * count_of<kRank>(g.grad(), g.grad().dtype()));
}
template <int kRank>
void inverse_grad(GradientContext& g) {
  g.set(0, op1(kForward[kRank - 1], {g.grad()}) / count_of<kRank>(g.grad(), g.grad().dtype()));
}

// The transform takes no more of its input than fft_length says, and what it leaves out of its
// result does not count: the inverse of the gradient with zeros in those places.
template <int kRank>
void to_complex_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor& lengths = g.input(1);
  const Tensor whole = padded(g.grad(), lengths, kRank);
  const Tensor back = math::real(op1(kInverse[kRank - 1], {whole}));
  g.set(0,
        padded(back * count_of<kRank>(back, back.dtype()), last_sizes(g.input(0), kRank), kRank));
}

// Entries of the last axis stand for themselves and for their mirror image, except the first and,
// in even lengths, the last.
template <int kRank>
void to_real_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor& lengths = g.input(1);
  const DType real = g.grad().dtype();
  const DType complex = complex_of(real);
  const Tensor n = index(lengths, {-1});
  const Tensor k = range(floordiv(n, 2) + 1);
  const Tensor alone = logical_or(equal(k, 0), equal(k * 2, n));
  const Tensor weight = where(alone, 1.0, internal::int_scalar(2, real));
  const Tensor spectrum =
      op1(kReal[kRank - 1], {g.grad(), lengths}, {{"Treal", real}, {"Tcomplex", complex}});
  const Tensor scaled = spectrum * cast(weight / count_of<kRank>(g.grad(), real), complex);
  g.set(0, padded(scaled, last_sizes(g.input(0), kRank), kRank));
}

constexpr const char* kComplexAttrs = "Tcomplex: {complex64, complex128} = complex64";
constexpr const char* kRealAttrs =
    "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64";

constexpr OpDecl complex_op(const char* name, ShapeFn shape, GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = "input: Tcomplex",
          .outputs = "output: Tcomplex",
          .attrs = kComplexAttrs,
          .shape = shape,
          .gradient = gradient,
          .traits = {.may_reuse = 1},
          .flops = flops::fourier,
          .doc = doc};
}
constexpr OpDecl to_complex(const char* name, ShapeFn shape, GradientFn gradient) {
  return {.name = name,
          .inputs = "input: Treal, fft_length: int32",
          .outputs = "output: Tcomplex",
          .attrs = kRealAttrs,
          .shape = shape,
          .gradient = gradient,
          .traits = {.host_inputs = 0b10},
          .flops = flops::fourier,
          .doc = "The Fourier transform of real values: the first half of the last axis."};
}
constexpr OpDecl to_real(const char* name, ShapeFn shape, GradientFn gradient) {
  return {.name = name,
          .inputs = "input: Tcomplex, fft_length: int32",
          .outputs = "output: Treal",
          .attrs = kRealAttrs,
          .shape = shape,
          .gradient = gradient,
          .traits = {.host_inputs = 0b10},
          .flops = flops::fourier,
          .doc = "The real values whose Fourier transform begins with the input."};
}

constexpr const char* kForwardDoc = "The Fourier transform over the last axes.";
constexpr const char* kInverseDoc = "The inverse Fourier transform over the last axes.";
const OpRegistration kFft[] = {
    OpRegistration(complex_op("FFT", complex_shape<1>, forward_grad<1>, kForwardDoc)),
    OpRegistration(complex_op("FFT2D", complex_shape<2>, forward_grad<2>, kForwardDoc)),
    OpRegistration(complex_op("FFT3D", complex_shape<3>, forward_grad<3>, kForwardDoc))};
const OpRegistration kIfft[] = {
    OpRegistration(complex_op("IFFT", complex_shape<1>, inverse_grad<1>, kInverseDoc)),
    OpRegistration(complex_op("IFFT2D", complex_shape<2>, inverse_grad<2>, kInverseDoc)),
    OpRegistration(complex_op("IFFT3D", complex_shape<3>, inverse_grad<3>, kInverseDoc))};
const OpRegistration kRfft[] = {
    OpRegistration(to_complex("RFFT", real_shape<1, false>, to_complex_grad<1>)),
    OpRegistration(to_complex("RFFT2D", real_shape<2, false>, to_complex_grad<2>)),
    OpRegistration(to_complex("RFFT3D", real_shape<3, false>, to_complex_grad<3>))};
const OpRegistration kIrfft[] = {
    OpRegistration(to_real("IRFFT", real_shape<1, true>, to_real_grad<1>)),
    OpRegistration(to_real("IRFFT2D", real_shape<2, true>, to_real_grad<2>)),
    OpRegistration(to_real("IRFFT3D", real_shape<3, true>, to_real_grad<3>))};

Tensor real_transform(int rank, const Tensor& input, const IntList& fft_length) {
  const Tensor lengths =
      fft_length.empty() ? last_sizes(input, rank) : fft_length.tensor(DType::kInt32);
  const Tensor whole = fft_length.empty() ? input : padded(input, lengths, rank);
  return call1(kRfft[rank - 1], {whole, lengths},
               {{"Treal", input.dtype()}, {"Tcomplex", complex_of(input.dtype())}});
}

Tensor inverse_real_transform(int rank, const Tensor& input, const IntList& fft_length) {
  const DType real = input.dtype() == DType::kComplex128 ? DType::kDouble : DType::kFloat;
  Tensor lengths, whole = input;
  if (fft_length.empty()) {
    const Tensor sizes = last_sizes(input, rank);
    const Tensor last = maximum((index(sizes, {Slice(-1, none)}) - 1) * 2, Tensor(0));
    lengths = concat({index(sizes, {Slice(none, -1)}), last}, 0);
  } else {
    lengths = fft_length.tensor(DType::kInt32);
    const Tensor half = floordiv(index(lengths, {Slice(-1, none)}), 2) + 1;
    whole = padded(input, concat({index(lengths, {Slice(none, -1)}), half}, 0), rank);
  }
  return call1(kIrfft[rank - 1], {whole, lengths}, {{"Treal", real}, {"Tcomplex", input.dtype()}});
}

Tensor complex_transform(const OpRegistration& op, Tensor input) {
  const DType dtype = input.dtype();
  return call1(op, {std::move(input)}, {{"Tcomplex", dtype}});
}

}  // namespace

namespace signal {

Tensor fft(Tensor input) { return complex_transform(kFft[0], std::move(input)); }
Tensor fft2d(Tensor input) { return complex_transform(kFft[1], std::move(input)); }
Tensor fft3d(Tensor input) { return complex_transform(kFft[2], std::move(input)); }
Tensor ifft(Tensor input) { return complex_transform(kIfft[0], std::move(input)); }
Tensor ifft2d(Tensor input) { return complex_transform(kIfft[1], std::move(input)); }
Tensor ifft3d(Tensor input) { return complex_transform(kIfft[2], std::move(input)); }
Tensor rfft(Tensor input, const IntList& n) { return real_transform(1, input, n); }
Tensor rfft2d(Tensor input, const IntList& n) { return real_transform(2, input, n); }
Tensor rfft3d(Tensor input, const IntList& n) { return real_transform(3, input, n); }
Tensor irfft(Tensor input, const IntList& n) { return inverse_real_transform(1, input, n); }
Tensor irfft2d(Tensor input, const IntList& n) { return inverse_real_transform(2, input, n); }
Tensor irfft3d(Tensor input, const IntList& n) { return inverse_real_transform(3, input, n); }

}  // namespace signal
}  // namespace tandem
