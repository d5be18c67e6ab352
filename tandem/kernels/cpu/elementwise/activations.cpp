// Functions of single elements that networks put between layers, and their gradients.

#include <cmath>
#include <limits>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

// ---- Relu, Relu6, LeakyRelu. Comparisons with NaN are false: written like this NaN goes through.
// The gradients of Relu and Relu6 are products with 0 or 1, so that a gradient of NaN or infinity
// is NaN where they are flat.

struct ReluOf {
  template <class T>
  static T of(T x) {
    return x <= T(0) ? T(0) : x;
  }
};
struct ReluGradOf {
  template <class T>
  static T of(T g, T x) {
    return g * static_cast<T>(x > T(0));
  }
};
struct Relu6Of {
  template <class T>
  static T of(T x) {
    return x <= T(0) ? T(0) : x >= T(6) ? T(6) : x;
  }
};
struct Relu6GradOf {
  template <class T>
  static T of(T g, T x) {
    return g * static_cast<T>(x > T(0) && x < T(6));
  }
};
struct LeakyReluOf {
  template <class T>
  static T of(T x, float alpha) {
    return x > T(0) ? x : x * static_cast<T>(alpha);
  }
};
struct LeakyReluGradOf {
  template <class T>
  static T of(T g, T x, float alpha) {
    return x > T(0) ? g : g * static_cast<T>(alpha);
  }
};

// ---- Elu, Selu. Their gradients are given the output y.

struct EluOf {
  template <class T>
  static T of(T x) {
    return x < T(0) ? std::expm1(x) : x;
  }
};
struct EluGradOf {
  template <class T>
  static T of(T g, T y) {
    return y < T(0) ? (y + T(1)) * g : g;
  }
};

// Klambauer et al. 2017, equation 14.
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

struct SeluOf {
  template <class T>
  static T of(T x) {
    return x < T(0) ? T(kSeluScaleAlpha) * std::expm1(x) : T(kSeluScale) * x;
  }
};
struct SeluGradOf {
  template <class T>
  static T of(T g, T y) {
    return y < T(0) ? g * (y + T(kSeluScaleAlpha)) : g * T(kSeluScale);
  }
};

// ---- Softplus, Softsign ----

struct SoftplusOf {
  template <class T>
  static T of(T x) {
    // Beyond +-threshold, log(1 + exp(x)) is x or exp(x) to the last bit.
    static const T threshold = -std::log(std::numeric_limits<T>::epsilon()) - T(2);
    if (x > threshold) return x;
    const T e = std::exp(x);
    return x < -threshold ? e : std::log1p(e);
  }
};
struct SoftplusGradOf {
  template <class T>
  static T of(T g, T x) {
    return g / (std::exp(-x) + T(1));
  }
};
struct SoftsignOf {
  template <class T>
  static T of(T x) {
    return x / (std::abs(x) + T(1));
  }
};
struct SoftsignGradOf {
  template <class T>
  static T of(T g, T x) {
    const T d = std::abs(x) + T(1);
    return g / (d * d);
  }
};

constexpr UnaryOp kRelu = unary_op<ReluOf>(kReals, 0.5);
constexpr UnaryOp kRelu6 = unary_op<Relu6Of>(kReals, 0.5);
constexpr UnaryOp kLeakyRelu = unary_op<LeakyReluOf>(Floats{}, 0.5);
constexpr UnaryOp kElu = unary_op<EluOf>(Floats{}, 8);
constexpr UnaryOp kSelu = unary_op<SeluOf>(Floats{}, 8);
constexpr UnaryOp kSoftplus = unary_op<SoftplusOf>(Floats{}, 16);
constexpr UnaryOp kSoftsign = unary_op<SoftsignOf>(Floats{}, 1);

constexpr BinaryOp kReluGrad = binary_op<ReluGradOf>(kReals, 0.5);
constexpr BinaryOp kRelu6Grad = binary_op<Relu6GradOf>(kReals, 0.5);
constexpr BinaryOp kLeakyReluGrad = binary_op<LeakyReluGradOf>(Floats{}, 0.5);
constexpr BinaryOp kEluGrad = binary_op<EluGradOf>(Floats{}, 1);
constexpr BinaryOp kSeluGrad = binary_op<SeluGradOf>(Floats{}, 1);
constexpr BinaryOp kSoftplusGrad = binary_op<SoftplusGradOf>(Floats{}, 6);
constexpr BinaryOp kSoftsignGrad = binary_op<SoftsignGradOf>(Floats{}, 1);

template <const BinaryOp& op>
constexpr KernelDecl gradient_kernel(const char* name) {
  KernelDecl decl = kernel_of<op>(name);
  decl.run = [](KernelContext& c) { run_binary_same_shape(c, op); };
  return decl;
}

KernelDecl with_run(KernelDecl decl, KernelFn run) {
  decl.run = run;
  decl.float_loops = nullptr;
  return decl;
}
void leaky_relu(KernelContext& c) { run_unary(c, kLeakyRelu, c.attr<float>("alpha")); }
void leaky_relu_grad(KernelContext& c) {
  run_binary_same_shape(c, kLeakyReluGrad, c.attr<float>("alpha"));
}

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kRelu>("Relu")),
    KernelRegistration(kernel_of<kRelu6>("Relu6")),
    KernelRegistration(with_run(kernel_of<kLeakyRelu>("LeakyRelu"), leaky_relu)),
    KernelRegistration(kernel_of<kElu>("Elu")),
    KernelRegistration(kernel_of<kSelu>("Selu")),
    KernelRegistration(kernel_of<kSoftplus>("Softplus")),
    KernelRegistration(kernel_of<kSoftsign>("Softsign")),
    KernelRegistration(gradient_kernel<kReluGrad>("ReluGrad")),
    KernelRegistration(gradient_kernel<kRelu6Grad>("Relu6Grad")),
    KernelRegistration(with_run(kernel_of<kLeakyReluGrad>("LeakyReluGrad"), leaky_relu_grad)),
    KernelRegistration(gradient_kernel<kEluGrad>("EluGrad")),
    KernelRegistration(gradient_kernel<kSeluGrad>("SeluGrad")),
    KernelRegistration(gradient_kernel<kSoftplusGrad>("SoftplusGrad")),
    KernelRegistration(gradient_kernel<kSoftsignGrad>("SoftsignGrad")),
};

}  // namespace
}  // namespace tandem::cpu
