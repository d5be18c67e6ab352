#pragma once

// The part of the C++ standard library that generated kernels use, for NVRTC, which has none: this
// text is what the headers cmath, cstdint and so on are there. Other compilers never see it.

namespace std {

using size_t = decltype(sizeof(0));
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;

template <class A, class B>
constexpr bool is_same_v = false;
template <class A>
constexpr bool is_same_v<A, A> = true;

template <class T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
constexpr bool is_signed_integer_v =
    is_same_v<T, int8_t> || is_same_v<T, int16_t> || is_same_v<T, int32_t> || is_same_v<T, int64_t>;
template <class T>
constexpr bool is_unsigned_v =
    is_same_v<T, bool> || is_same_v<T, uint8_t> || is_same_v<T, uint16_t> ||
    is_same_v<T, uint32_t> || is_same_v<T, uint64_t>;
template <class T>
constexpr bool is_signed_v = is_signed_integer_v<T> || is_floating_point_v<T>;
template <class T>
constexpr bool is_integral_v = is_signed_integer_v<T> || is_unsigned_v<T>;

template <bool kFirst, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using conditional_t = typename conditional<kFirst, A, B>::type;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return bit_cast<float>(0x7f800000u); }
  static constexpr float quiet_NaN() { return bit_cast<float>(0x7fc00000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double infinity() { return bit_cast<double>(0x7ff0000000000000ull); }
  static constexpr double quiet_NaN() { return bit_cast<double>(0x7ff8000000000000ull); }
};

using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::expm1;
using ::fabs;
using ::floor;
using ::fmod;
using ::lgamma;
using ::log;
using ::log1p;
using ::pow;
using ::rint;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;

}  // namespace std
