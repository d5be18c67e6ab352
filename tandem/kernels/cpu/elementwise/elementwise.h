#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/graph/kernel.h"

// The driver of elementwise kernels: shapes, broadcasting, threads, reuse of an input's memory and
// the conversions of 16-bit floats happen here, once. An op supplies one small loop for each dtype,
// most easily as a functor:
//
//     struct Cube {
//       template <class T>
//       static T of(T x) { return x * x * x; }
//     };
//     constexpr UnaryOp kCube = unary_op<Cube>(Types<float, double>{}, 0.5);
//     const KernelRegistration kCubeKernel(kernel_of<kCube>("Cube"));
//
// A loop for float serves half and bfloat16 too, unless the op says otherwise (`without_float16`)
// or supplies loops of their own. A number that an attribute gives (a slope, a tolerance) reaches
// the functor as its last argument, `of(T x, float parameter)`; a kernel function of the op's own
// gives it:
//
//     void leaky_relu(KernelContext& c) { run_unary(c, kLeakyRelu, c.attr<float>("alpha")); }
//
// Loops may be called from several threads, on any piece of the elements, in any order: an
// element's result must not depend on the piece that it falls into. `out` may be x, a or b, with
// elements of the same size; otherwise the ranges do not overlap. Loops may throw.

namespace tandem::cpu {

/// out[i] = f(x[i]).
using UnaryLoop = void (*)(const void* x, void* out, std::int64_t n, float parameter);
/// out[i] = f(a[i], b[i]), or with a[0] for all i if `a_scalar`, b[0] if `b_scalar`.
using BinaryLoop = void (*)(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar,
                            bool b_scalar, float parameter);

/// The loops of an op by the dtype of its inputs; constant-initialised.
template <class Loop>
struct LoopTable {
  Loop loops[kDTypeCount] = {};
  double cost =
      1;  ///< time of one element of float in nanoseconds, roughly: when to use more threads
  bool float16 = true;  ///< half and bfloat16 run through float

  constexpr Loop loop(DType t) const { return loops[static_cast<int>(t)]; }
  constexpr void set(DType t, Loop loop) { loops[static_cast<int>(t)] = loop; }
  /// The same, but half and bfloat16 only as far as they have loops of their own.
  constexpr LoopTable without_float16() const {
    LoopTable table = *this;
    table.float16 = false;
    return table;
  }
  /// The dtypes that the op takes.
  constexpr DTypeSet types() const {
    DTypeSet set;
    for (int i = 0; i < kDTypeCount; ++i) {
      if (loops[i]) set = set | DTypeSet{static_cast<DType>(i)};
    }
    if (float16 && loop(DType::kFloat)) set = set | DTypeSet{DType::kHalf, DType::kBFloat16};
    return set;
  }
};
using UnaryOp = LoopTable<UnaryLoop>;
using BinaryOp = LoopTable<BinaryLoop>;

/// Output 0 from input 0. The output's dtype is the input's, or another one (bool, a real one) that
/// the loops write.
void run_unary(KernelContext& c, const UnaryOp& op, float parameter = 0);
/// Output 0 from inputs 0 and 1, broadcast. Throws InvalidArgumentError "Incompatible shapes" if
/// they do not fit.
void run_binary(KernelContext& c, const BinaryOp& op, float parameter = 0);
/// Like run_binary for inputs that must have one shape: the gradient ops.
void run_binary_same_shape(KernelContext& c, const BinaryOp& op, float parameter = 0);

// ---- Tables from functors. ----

template <class... Ts>
struct Types {};
template <class... As, class... Bs>
constexpr Types<As..., Bs...> operator+(Types<As...>, Types<Bs...>) {
  return {};
}
using Floats = Types<float, double>;  // half and bfloat16 come with float
using SignedInts = Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
using UnsignedInts = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using Complexes = Types<std::complex<float>, std::complex<double>>;
constexpr auto kInts = SignedInts{} + UnsignedInts{};
constexpr auto kReals = Floats{} + kInts;
constexpr auto kNumbers = kReals + Complexes{};

/// Calls F::of with the parameter if it takes one.
template <class F, class... Args>
auto call_of(float parameter, Args... args) {
  if constexpr (requires { F::of(args..., parameter); }) {
    return F::of(args..., parameter);
  } else {
    return F::of(args...);
  }
}

inline ElementLoops float_loops(const UnaryOp& op) {
  return {.unary = op.loop(DType::kFloat), .cost = op.cost};
}
inline ElementLoops float_loops(const BinaryOp& op) {
  return {.binary = op.loop(DType::kFloat), .cost = op.cost};
}

template <class F, class T>
void unary_loop(const void* x, void* out, std::int64_t n, float parameter) {
  using R = decltype(call_of<F>(parameter, T{}));
  const T* from = static_cast<const T*>(x);
  R* to = static_cast<R*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = call_of<F>(parameter, from[i]);
}

template <class F, class T>
void binary_loop(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar,
                 bool b_scalar, float parameter) {
  using R = decltype(call_of<F>(parameter, T{}, T{}));
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* to = static_cast<R*>(out);
  const std::int64_t dx = a_scalar ? 0 : 1, dy = b_scalar ? 0 : 1;
  for (std::int64_t i = 0; i < n; ++i) to[i] = call_of<F>(parameter, x[i * dx], y[i * dy]);
}

template <class F, class... Ts>
constexpr UnaryOp unary_op(Types<Ts...>, double cost = 1) {
  UnaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, unary_loop<F, Ts>), ...);
  return op;
}

template <class F, class... Ts>
constexpr BinaryOp binary_op(Types<Ts...>, double cost = 1) {
  BinaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, binary_loop<F, Ts>), ...);
  return op;
}

/// The declaration of the kernel that runs a table (a constant at namespace scope), for the dtypes
/// that it has; an op whose inputs have a fixed dtype has no type attribute (null). `const
/// KernelRegistration kCubeKernel(kernel_of<kCube>("Cube"));`
template <const auto& table>
constexpr KernelDecl kernel_of(const char* op, const char* type_attr = "T") {
  KernelDecl decl{.op = op};
  if (type_attr) decl.types[0] = {type_attr, table.types()};
  decl.run = [](KernelContext& c) {
    if constexpr (std::is_same_v<std::decay_t<decltype(table)>, UnaryOp>) {
      run_unary(c, table);
    } else {
      run_binary(c, table);
    }
  };
  decl.float_loops = [] { return float_loops(table); };
  return decl;
}

/// What integers wrap around in: unsigned, and as wide as C++ computes.
template <class T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>, T>;

}  // namespace tandem::cpu
