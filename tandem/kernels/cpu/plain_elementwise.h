#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/graph/kernel.h"

namespace tandem {

// The driver of elementwise kernels: broadcasting, splitting among threads and reuse of memory happen here, once; an op
// brings only its inner loop, one small function for each dtype.
//
//     struct Mul { template <class T> T operator()(T x, T y) const { return x * y; } };
//     const KernelRegistration kMulFloat{{.op = "Mul", .types = {{"T", {DType::kFloat}}}, .run = binary_kernel<Mul, float>}};

/// out[i] = f(a[i], b[i]); a or b stands still if `a_scalar` or `b_scalar`. `out` may be a or b.
using BinaryLoop = void (*)(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar, bool b_scalar);
/// out[i] = f(x[i]); `out` may be x.
using UnaryLoop = void (*)(const void* x, void* out, std::int64_t n);

/// Computes output 0 from inputs 0 and 1. `cost` is the time of one element in ns.
void run_binary(KernelContext& c, BinaryLoop loop, std::size_t in_size, std::size_t out_size, double cost);
/// Computes output 0 from input 0.
void run_unary(KernelContext& c, UnaryLoop loop, std::size_t in_size, std::size_t out_size, double cost);

/// Half types compute in float.
template <class T>
struct Computes {
  using type = T;
};
template <>
struct Computes<Half> {
  using type = float;
};
template <>
struct Computes<BFloat16> {
  using type = float;
};
template <class T>
typename Computes<T>::type computing(T value) {
  return static_cast<typename Computes<T>::type>(value);
}

template <class F, class T, class R>
void binary_loop(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar, bool b_scalar) {
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  auto* z = static_cast<R*>(out);
  const F f{};
  if (a_scalar) {
    const auto v = computing(*x);
    for (std::int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(f(v, computing(y[i])));
  } else if (b_scalar) {
    const auto v = computing(*y);
    for (std::int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(f(computing(x[i]), v));
  } else {
    for (std::int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(f(computing(x[i]), computing(y[i])));
  }
}

template <class F, class T, class R>
void unary_loop(const void* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const T*>(in);
  auto* z = static_cast<R*>(out);
  const F f{};
  for (std::int64_t i = 0; i < n; ++i) z[i] = static_cast<R>(f(computing(x[i])));
}

template <class F, class T, class R = T>
void binary_kernel(KernelContext& c) {
  run_binary(c, &binary_loop<F, T, R>, sizeof(T), sizeof(R), 1.0);
}
template <class F, class T, class R = T>
void unary_kernel(KernelContext& c) {
  run_unary(c, &unary_loop<F, T, R>, sizeof(T), sizeof(R), 4.0);
}

}  // namespace tandem
