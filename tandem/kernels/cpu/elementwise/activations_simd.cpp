// Activations of float and double (half and bfloat16 through float) in vectors.

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/activations_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#ifndef TANDEM_KERNELS_CPU_ACTIVATIONS_SIMD
#define TANDEM_KERNELS_CPU_ACTIVATIONS_SIMD
namespace tandem::cpu {
namespace {

struct Activations {
  UnaryOp relu, relu6, leaky_relu, elu, selu, softplus, softsign;
  BinaryOp relu_grad, relu6_grad, leaky_relu_grad, elu_grad, selu_grad, softplus_grad,
      softsign_grad;
};

}  // namespace
}  // namespace tandem::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Comparisons with NaN are false: written like this NaN goes through. The gradients of Relu and
// Relu6 are products with 0 or 1, so that a gradient of NaN or infinity is NaN where they are flat.
struct ReluOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);
  }
};
struct ReluGradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    return hn::Mul(g, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1)));
  }
};
struct Relu6Of {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const auto six = hn::Set(d, 6);
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), hn::IfThenElse(hn::Ge(x, six), six, x));
  }
};
struct Relu6GradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    const auto slopes = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, 6)));
    return hn::Mul(g, hn::IfThenElseZero(slopes, hn::Set(d, 1)));
  }
};

// With the slope as a parameter, which the loops for functors do not pass.
template <class T>
void LeakyRelu(const void* x, void* out, std::int64_t n, float alpha) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto slope = hn::Set(d, static_cast<T>(alpha));
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  const auto f = [=](auto v) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, slope));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, from + i)), d, to + i);
  if (i < n) StoreTail(f(LoadTail(d, from + i, n - i)), d, to + i, n - i);
}
template <class T>
void LeakyReluGrad(const void* g, const void* x, void* out, std::int64_t n, bool, bool,
                   float alpha) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto slope = hn::Set(d, static_cast<T>(alpha));
  const T* upstream = static_cast<const T*>(g);
  const T* features = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  const auto f = [=](auto u, auto v) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), u, hn::Mul(u, slope));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(hn::LoadU(d, upstream + i), hn::LoadU(d, features + i)), d, to + i);
  }
  if (i < n) {
    StoreTail(f(LoadTail(d, upstream + i, n - i), LoadTail(d, features + i, n - i)), d, to + i,
              n - i);
  }
}

struct EluOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), Expm1(d, x), x);
  }
};
struct EluGradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V y) const {
    return hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Mul(hn::Add(y, hn::Set(d, 1)), g), g);
  }
};

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;
template <class D>
HWY_INLINE hn::Vec<D> Constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}
struct SeluOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)),
                          hn::Mul(Constant(d, kSeluScaleAlpha), Expm1(d, x)),
                          hn::Mul(Constant(d, kSeluScale), x));
  }
};
struct SeluGradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V y) const {
    return hn::Mul(g,
                   hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Add(y, Constant(d, kSeluScaleAlpha)),
                                  Constant(d, kSeluScale)));
  }
};

// max(x, 0) + log(1 + exp(-|x|))
struct SoftplusOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const auto rest = Log1p(d, Exp(d, hn::Neg(hn::Abs(x))));
    return hn::Add(hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x), rest);
  }
};
struct SoftplusGradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    return hn::Div(g, hn::Add(Exp(d, hn::Neg(x)), hn::Set(d, 1)));
  }
};
struct SoftsignOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Div(x, hn::Add(hn::Abs(x), hn::Set(d, 1)));
  }
};
struct SoftsignGradOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    const auto divisor = hn::Add(hn::Abs(x), hn::Set(d, 1));
    return hn::Div(g, hn::Mul(divisor, divisor));
  }
};

template <class Loop>
constexpr LoopTable<Loop> table(Loop for_float, Loop for_double, double cost) {
  LoopTable<Loop> op;
  op.cost = cost;
  op.set(DType::kFloat, for_float);
  op.set(DType::kDouble, for_double);
  return op;
}
template <class F>
constexpr UnaryOp unary(double cost) {
  return table<UnaryLoop>(Unary<F, float>, Unary<F, double>, cost);
}
template <class F>
constexpr BinaryOp binary(double cost) {
  return table<BinaryLoop>(Binary<F, float>, Binary<F, double>, cost);
}

constexpr Activations kTable{
    .relu = unary<ReluOf>(0.2),
    .relu6 = unary<Relu6Of>(0.2),
    .leaky_relu = table<UnaryLoop>(LeakyRelu<float>, LeakyRelu<double>, 0.2),
    .elu = unary<EluOf>(0.8),
    .selu = unary<SeluOf>(0.8),
    .softplus = unary<SoftplusOf>(2),
    .softsign = unary<SoftsignOf>(0.4),
    .relu_grad = binary<ReluGradOf>(0.3),
    .relu6_grad = binary<Relu6GradOf>(0.3),
    .leaky_relu_grad = table<BinaryLoop>(LeakyReluGrad<float>, LeakyReluGrad<double>, 0.3),
    .elu_grad = binary<EluGradOf>(0.3),
    .selu_grad = binary<SeluGradOf>(0.3),
    .softplus_grad = binary<SoftplusGradOf>(0.8),
    .softsign_grad = binary<SoftsignGradOf>(0.5),
};

}  // namespace

const Activations* VectorActivations() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorActivations);

template <auto member, bool has_alpha = false>
constexpr KernelDecl vectors(const char* op) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.types[0] = {"T", kFloatTypes};
  decl.priority = 10;
  if (!has_alpha)
    decl.float_loops = [] {
      return float_loops(HWY_DYNAMIC_DISPATCH(VectorActivations)()->*member);
    };
  decl.run = [](KernelContext& c) {
    const auto& loops = HWY_DYNAMIC_DISPATCH(VectorActivations)()->*member;
    const float parameter = has_alpha ? c.attr<float>("alpha") : 0;
    if constexpr (std::is_same_v<std::decay_t<decltype(loops)>, UnaryOp>) {
      run_unary(c, loops, parameter);
    } else {
      run_binary_same_shape(c, loops, parameter);
    }
  };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&Activations::relu>("Relu")),
    KernelRegistration(vectors<&Activations::relu6>("Relu6")),
    KernelRegistration(vectors<&Activations::leaky_relu, true>("LeakyRelu")),
    KernelRegistration(vectors<&Activations::elu>("Elu")),
    KernelRegistration(vectors<&Activations::selu>("Selu")),
    KernelRegistration(vectors<&Activations::softplus>("Softplus")),
    KernelRegistration(vectors<&Activations::softsign>("Softsign")),
    KernelRegistration(vectors<&Activations::relu_grad>("ReluGrad")),
    KernelRegistration(vectors<&Activations::relu6_grad>("Relu6Grad")),
    KernelRegistration(vectors<&Activations::leaky_relu_grad, true>("LeakyReluGrad")),
    KernelRegistration(vectors<&Activations::elu_grad>("EluGrad")),
    KernelRegistration(vectors<&Activations::selu_grad>("SeluGrad")),
    KernelRegistration(vectors<&Activations::softplus_grad>("SoftplusGrad")),
    KernelRegistration(vectors<&Activations::softsign_grad>("SoftsignGrad")),
};

}  // namespace
}  // namespace tandem::cpu
#endif
