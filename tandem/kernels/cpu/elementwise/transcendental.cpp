// Exponentials, logarithms, circular and hyperbolic functions, by the standard library.

#include <cmath>
#include <complex>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;

#define TANDEM_STANDARD_FUNCTION(NAME, FUNCTION) \
  struct NAME {                                  \
    template <class T>                           \
    static T of(T x) {                           \
      return FUNCTION(x);                        \
    }                                            \
  }
TANDEM_STANDARD_FUNCTION(ExpOf, std::exp);
TANDEM_STANDARD_FUNCTION(LogOf, std::log);
TANDEM_STANDARD_FUNCTION(SinOf, std::sin);
TANDEM_STANDARD_FUNCTION(CosOf, std::cos);
TANDEM_STANDARD_FUNCTION(TanOf, std::tan);
TANDEM_STANDARD_FUNCTION(AsinOf, std::asin);
TANDEM_STANDARD_FUNCTION(AcosOf, std::acos);
TANDEM_STANDARD_FUNCTION(AtanOf, std::atan);
TANDEM_STANDARD_FUNCTION(SinhOf, std::sinh);
TANDEM_STANDARD_FUNCTION(CoshOf, std::cosh);
TANDEM_STANDARD_FUNCTION(TanhOf, std::tanh);
TANDEM_STANDARD_FUNCTION(AsinhOf, std::asinh);
TANDEM_STANDARD_FUNCTION(AcoshOf, std::acosh);
TANDEM_STANDARD_FUNCTION(AtanhOf, std::atanh);
#undef TANDEM_STANDARD_FUNCTION

struct Expm1Of {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>) {
      return std::expm1(x);
    } else {
      // exp(a) cos(b) - 1 = expm1(a) cos(b) - 2 sin(b / 2)^2, without cancellation.
      const auto half = std::sin(x.imag() / 2);
      return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half,
              std::exp(x.real()) * std::sin(x.imag())};
    }
  }
};
struct Log1pOf {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>) {
      return std::log1p(x);
    } else {
      // |1 + x|^2 = 1 + a (2 + a) + b^2.
      const auto a = x.real(), b = x.imag();
      if (!(std::abs(a) < 1e3 && std::abs(b) < 1e3)) return std::log(T(1) + x);
      return {std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)};
    }
  }
};
// One exponential that cannot overflow: of a number that is not positive.
struct SigmoidOf {
  template <class T>
  static T of(T x) {
    if constexpr (is_real<T>) {
      const T e = std::exp(-std::fabs(x));
      return (x >= 0 ? T(1) : e) / (T(1) + e);
    } else {
      return T(1) / (T(1) + std::exp(-x));
    }
  }
};

// In terms of the function's result y.
struct TanhGradOf {
  template <class T>
  static T of(T y, T dy) {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGradOf {
  template <class T>
  static T of(T y, T dy) {
    return dy * y * (T(1) - y);
  }
};
// These three multiply by the conjugate of the derivative, and nothing times infinity is nothing.
struct ReciprocalGradOf {
  template <class T>
  static T of(T y, T dy) {
    return -dy * y * y;
  }
};
struct SqrtGradOf {
  template <class T>
  static T of(T y, T dy) {
    return dy * T(0.5) / y;
  }
};
struct RsqrtGradOf {
  template <class T>
  static T of(T y, T dy) {
    return T(-0.5) * (dy * y) * (y * y);
  }
};
template <class F>
struct Conjugated {
  template <class T>
  static T of(T y, T dy) {
    if (dy == T(0)) return T(0);
    if constexpr (is_real<T>) {
      return F::of(y, dy);
    } else {
      return F::of(std::conj(y), dy);
    }
  }
};

constexpr auto kFields = Floats{} + Complexes{};

constexpr UnaryOp kExp = unary_op<ExpOf>(kFields, 4);
constexpr UnaryOp kExpm1 = unary_op<Expm1Of>(kFields, 8);
constexpr UnaryOp kLog = unary_op<LogOf>(kFields, 4);
constexpr UnaryOp kLog1p = unary_op<Log1pOf>(kFields, 8);
constexpr UnaryOp kSin = unary_op<SinOf>(kFields, 5);
constexpr UnaryOp kCos = unary_op<CosOf>(kFields, 5);
constexpr UnaryOp kTan = unary_op<TanOf>(kFields, 10);
constexpr UnaryOp kAsin = unary_op<AsinOf>(kFields, 8);
constexpr UnaryOp kAcos = unary_op<AcosOf>(kFields, 8);
constexpr UnaryOp kAtan = unary_op<AtanOf>(kFields, 8);
constexpr UnaryOp kSinh = unary_op<SinhOf>(kFields, 10);
constexpr UnaryOp kCosh = unary_op<CoshOf>(kFields, 8);
constexpr UnaryOp kTanh = unary_op<TanhOf>(kFields, 10);
constexpr UnaryOp kAsinh = unary_op<AsinhOf>(kFields, 15);
constexpr UnaryOp kAcosh = unary_op<AcoshOf>(kFields, 15);
constexpr UnaryOp kAtanh = unary_op<AtanhOf>(kFields, 15);
constexpr UnaryOp kSigmoid = unary_op<SigmoidOf>(kFields, 6);

constexpr BinaryOp kTanhGrad = binary_op<TanhGradOf>(kFields);
constexpr BinaryOp kSigmoidGrad = binary_op<SigmoidGradOf>(kFields);
constexpr BinaryOp kReciprocalGrad = binary_op<Conjugated<ReciprocalGradOf>>(kFields);
constexpr BinaryOp kSqrtGrad = binary_op<Conjugated<SqrtGradOf>>(kFields, 2);
constexpr BinaryOp kRsqrtGrad = binary_op<Conjugated<RsqrtGradOf>>(kFields);

template <const BinaryOp& op>
constexpr KernelDecl gradient_kernel(const char* name) {
  KernelDecl decl = kernel_of<op>(name);
  decl.run = [](KernelContext& c) { run_binary_same_shape(c, op); };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kExp>("Exp")),
    KernelRegistration(kernel_of<kExpm1>("Expm1")),
    KernelRegistration(kernel_of<kLog>("Log")),
    KernelRegistration(kernel_of<kLog1p>("Log1p")),
    KernelRegistration(kernel_of<kSin>("Sin")),
    KernelRegistration(kernel_of<kCos>("Cos")),
    KernelRegistration(kernel_of<kTan>("Tan")),
    KernelRegistration(kernel_of<kAsin>("Asin")),
    KernelRegistration(kernel_of<kAcos>("Acos")),
    KernelRegistration(kernel_of<kAtan>("Atan")),
    KernelRegistration(kernel_of<kSinh>("Sinh")),
    KernelRegistration(kernel_of<kCosh>("Cosh")),
    KernelRegistration(kernel_of<kTanh>("Tanh")),
    KernelRegistration(kernel_of<kAsinh>("Asinh")),
    KernelRegistration(kernel_of<kAcosh>("Acosh")),
    KernelRegistration(kernel_of<kAtanh>("Atanh")),
    KernelRegistration(kernel_of<kSigmoid>("Sigmoid")),
    KernelRegistration(gradient_kernel<kTanhGrad>("TanhGrad")),
    KernelRegistration(gradient_kernel<kSigmoidGrad>("SigmoidGrad")),
    KernelRegistration(gradient_kernel<kReciprocalGrad>("ReciprocalGrad")),
    KernelRegistration(gradient_kernel<kReciprocalGrad>("InvGrad")),
    KernelRegistration(gradient_kernel<kSqrtGrad>("SqrtGrad")),
    KernelRegistration(gradient_kernel<kRsqrtGrad>("RsqrtGrad")),
};

}  // namespace
}  // namespace tandem::cpu
