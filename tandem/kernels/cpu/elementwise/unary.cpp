// Functions of one value that are exact or nearly so: signs, squares, roots, rounding, tests.

#include <cmath>
#include <complex>
#include <limits>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

struct NegOf {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(x));
    } else {
      return -x;
    }
  }
};
struct AbsOf {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? NegOf::of(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
struct SignOf {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
    } else {
      return static_cast<T>((x > 0) - (x < 0));
    }
  }
  template <class R>
  static std::complex<R> of(std::complex<R> x) {
    const R magnitude = std::abs(x);
    return magnitude == 0 ? std::complex<R>(0) : x / magnitude;
  }
};
struct SquareOf {
  template <class T>
  static T of(T x) {
    return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(x));
  }
};
struct SqrtOf {
  template <class T>
  static T of(T x) {
    return std::sqrt(x);
  }
};
struct RsqrtOf {
  template <class T>
  static T of(T x) {
    return T(1) / std::sqrt(x);
  }
};
struct ReciprocalOf {
  template <class T>
  static T of(T x) {
    return T(1) / x;
  }
};
struct FloorOf {
  template <class T>
  static T of(T x) {
    return std::floor(x);
  }
};
struct CeilOf {
  template <class T>
  static T of(T x) {
    return std::ceil(x);
  }
};
// In the default rounding mode: halves to the even number.
struct RoundOf {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return std::nearbyint(x);
    }
  }
};
struct IsNanOf {
  template <class T>
  static bool of(T x) {
    return x != x;
  }
};
struct IsInfOf {
  template <class T>
  static bool of(T x) {
    return std::fabs(x) > std::numeric_limits<T>::max();
  }
};
struct IsFiniteOf {
  template <class T>
  static bool of(T x) {
    return std::fabs(x) <= std::numeric_limits<T>::max();
  }
};

// In pieces of a constant size, which compilers turn into vector instructions.
template <class F, class T>
void test_loop(const void* x, void* out, std::int64_t n, float) {
  constexpr std::int64_t kPiece = 16;
  const T* from = static_cast<const T*>(x);
  bool* to = static_cast<bool*>(out);
  std::int64_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    bool piece[kPiece];
    for (std::int64_t k = 0; k < kPiece; ++k) piece[k] = F::of(from[i + k]);
    for (std::int64_t k = 0; k < kPiece; ++k) to[i + k] = piece[k];
  }
  for (; i < n; ++i) to[i] = F::of(from[i]);
}
template <class F>
constexpr UnaryOp test_op() {
  UnaryOp op;
  op.set(DType::kFloat, test_loop<F, float>);
  op.set(DType::kDouble, test_loop<F, double>);
  return op;
}

constexpr auto kFields = Floats{} + Complexes{};

constexpr UnaryOp kNeg = unary_op<NegOf>(Floats{} + SignedInts{} + Complexes{});
constexpr UnaryOp kAbs = unary_op<AbsOf>(Floats{} + SignedInts{});
constexpr UnaryOp kSign = unary_op<SignOf>(Floats{} + SignedInts{} + Complexes{});
constexpr UnaryOp kSquare = unary_op<SquareOf>(kNumbers);
constexpr UnaryOp kSqrt = unary_op<SqrtOf>(kFields, 2);
constexpr UnaryOp kRsqrt = unary_op<RsqrtOf>(kFields, 3);
constexpr UnaryOp kReciprocal = unary_op<ReciprocalOf>(kFields, 2);
constexpr UnaryOp kFloor = unary_op<FloorOf>(Floats{});
constexpr UnaryOp kCeil = unary_op<CeilOf>(Floats{});
constexpr UnaryOp kRound = unary_op<RoundOf>(Floats{} + SignedInts{});
constexpr UnaryOp kRint = unary_op<RoundOf>(Floats{});
constexpr UnaryOp kIsNan = test_op<IsNanOf>();
constexpr UnaryOp kIsInf = test_op<IsInfOf>();
constexpr UnaryOp kIsFinite = test_op<IsFiniteOf>();

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kNeg>("Neg")),
    KernelRegistration(kernel_of<kAbs>("Abs")),
    KernelRegistration(kernel_of<kSign>("Sign")),
    KernelRegistration(kernel_of<kSquare>("Square")),
    KernelRegistration(kernel_of<kSqrt>("Sqrt")),
    KernelRegistration(kernel_of<kRsqrt>("Rsqrt")),
    KernelRegistration(kernel_of<kReciprocal>("Reciprocal")),
    KernelRegistration(kernel_of<kReciprocal>("Inv")),
    KernelRegistration(kernel_of<kFloor>("Floor")),
    KernelRegistration(kernel_of<kCeil>("Ceil")),
    KernelRegistration(kernel_of<kRound>("Round")),
    KernelRegistration(kernel_of<kRint>("Rint")),
    KernelRegistration(kernel_of<kIsNan>("IsNan")),
    KernelRegistration(kernel_of<kIsInf>("IsInf")),
    KernelRegistration(kernel_of<kIsFinite>("IsFinite")),
};

}  // namespace
}  // namespace tandem::cpu
