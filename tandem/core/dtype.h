#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "tandem/core/export.h"
#include "tandem/core/half.h"

namespace tandem {

class Variant;
class ResourceHandle;

/// Element types, with TensorFlow's numbers (tensorflow.DataType). Reference types are 100 more.
enum class DType : std::int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBFloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5M2 = 24,
  kFloat8E4M3FN = 25,
  kFloat8E4M3FNUZ = 26,
  kFloat8E4M3B11FNUZ = 27,
  kFloat8E5M2FNUZ = 28,
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
};

// The names users write.
inline constexpr DType float16 = DType::kHalf;
inline constexpr DType bfloat16 = DType::kBFloat16;
inline constexpr DType float32 = DType::kFloat;
inline constexpr DType float64 = DType::kDouble;
inline constexpr DType int8 = DType::kInt8;
inline constexpr DType int16 = DType::kInt16;
inline constexpr DType int32 = DType::kInt32;
inline constexpr DType int64 = DType::kInt64;
inline constexpr DType uint8 = DType::kUint8;
inline constexpr DType uint16 = DType::kUint16;
inline constexpr DType uint32 = DType::kUint32;
inline constexpr DType uint64 = DType::kUint64;
inline constexpr DType boolean = DType::kBool;
inline constexpr DType complex64 = DType::kComplex64;
inline constexpr DType complex128 = DType::kComplex128;
inline constexpr DType string = DType::kString;
inline constexpr DType resource = DType::kResource;
inline constexpr DType variant = DType::kVariant;

/// One more than the largest number of a non-reference DType.
inline constexpr int kDTypeCount = 33;

constexpr bool is_ref(DType t) { return static_cast<int>(t) > 100; }
constexpr DType base_dtype(DType t) {
  return is_ref(t) ? static_cast<DType>(static_cast<int>(t) - 100) : t;
}
constexpr DType ref_dtype(DType t) {
  return is_ref(t) ? t : static_cast<DType>(static_cast<int>(t) + 100);
}

/// Bytes of one element as stored in an Array (4-bit types take a byte each); 0 for kInvalid.
TANDEM_EXPORT std::size_t dtype_size(DType t);

/// TensorFlow's name: "float", "int32", "half", "float_ref".
TANDEM_EXPORT std::string dtype_name(DType t);

/// The reverse of `dtype_name`; also takes "float32", "float64", "float16", "DT_FLOAT". Empty when
/// unknown.
TANDEM_EXPORT std::optional<DType> parse_dtype(std::string_view name);

TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, DType t);

constexpr bool is_floating(DType t) {
  return t == DType::kFloat || t == DType::kDouble || t == DType::kHalf || t == DType::kBFloat16;
}
constexpr bool is_complex(DType t) { return t == DType::kComplex64 || t == DType::kComplex128; }
/// What NumPy calls inexact: numbers that arithmetic rounds.
constexpr bool is_inexact(DType t) { return is_floating(t) || is_complex(t); }
constexpr bool is_signed_integer(DType t) {
  return t == DType::kInt8 || t == DType::kInt16 || t == DType::kInt32 || t == DType::kInt64;
}
constexpr bool is_unsigned_integer(DType t) {
  return t == DType::kUint8 || t == DType::kUint16 || t == DType::kUint32 || t == DType::kUint64;
}
constexpr bool is_integer(DType t) { return is_signed_integer(t) || is_unsigned_integer(t); }
/// Elements are C++ objects (strings, variants, resource handles): always on the host.
constexpr bool is_object(DType t) {
  return t == DType::kString || t == DType::kVariant || t == DType::kResource;
}
/// Gradients flow through values of this type.
constexpr bool is_differentiable(DType t) {
  return is_inexact(t) || t == DType::kResource || t == DType::kVariant;
}

/// A set of DTypes, as attribute constraints and kernel registrations need it.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= bit(t);
  }
  constexpr bool contains(DType t) const { return (bits_ & bit(t)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr DTypeSet operator|(DTypeSet other) const {
    DTypeSet all;
    all.bits_ = bits_ | other.bits_;
    return all;
  }

 private:
  static constexpr std::uint64_t bit(DType t) {
    return std::uint64_t{1} << static_cast<int>(base_dtype(t));
  }
  std::uint64_t bits_ = 0;
};

inline constexpr DTypeSet kFloatTypes{DType::kHalf, DType::kBFloat16, DType::kFloat,
                                      DType::kDouble};
inline constexpr DTypeSet kComplexTypes{DType::kComplex64, DType::kComplex128};
inline constexpr DTypeSet kSignedTypes{DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
inline constexpr DTypeSet kUnsignedTypes{DType::kUint8, DType::kUint16, DType::kUint32,
                                         DType::kUint64};
inline constexpr DTypeSet kIntegerTypes = kSignedTypes | kUnsignedTypes;
inline constexpr DTypeSet kRealTypes = kFloatTypes | kIntegerTypes;
inline constexpr DTypeSet kNumberTypes = kRealTypes | kComplexTypes;
inline constexpr DTypeSet kIndexTypes{DType::kInt32, DType::kInt64};
/// Everything whose elements are plain bytes with kernels: numbers and bool.
inline constexpr DTypeSet kPodTypes = kNumberTypes | DTypeSet{DType::kBool};
/// Everything that has kernels at all.
inline constexpr DTypeSet kAllTypes =
    kPodTypes | DTypeSet{DType::kString, DType::kResource, DType::kVariant};

/// The DType of a C++ element type: `dtype_of<float>` is kFloat.
template <class T>
struct DTypeOf;
template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

#define TANDEM_DTYPE_OF(TYPE, DTYPE) \
  template <>                        \
  struct DTypeOf<TYPE> : std::integral_constant<DType, DType::DTYPE> {}
TANDEM_DTYPE_OF(float, kFloat);
TANDEM_DTYPE_OF(double, kDouble);
TANDEM_DTYPE_OF(std::int8_t, kInt8);
TANDEM_DTYPE_OF(std::int16_t, kInt16);
TANDEM_DTYPE_OF(std::int32_t, kInt32);
TANDEM_DTYPE_OF(std::int64_t, kInt64);
TANDEM_DTYPE_OF(std::uint8_t, kUint8);
TANDEM_DTYPE_OF(std::uint16_t, kUint16);
TANDEM_DTYPE_OF(std::uint32_t, kUint32);
TANDEM_DTYPE_OF(std::uint64_t, kUint64);
TANDEM_DTYPE_OF(bool, kBool);
TANDEM_DTYPE_OF(Half, kHalf);
TANDEM_DTYPE_OF(BFloat16, kBFloat16);
TANDEM_DTYPE_OF(std::complex<float>, kComplex64);
TANDEM_DTYPE_OF(std::complex<double>, kComplex128);
TANDEM_DTYPE_OF(std::string, kString);
TANDEM_DTYPE_OF(Variant, kVariant);
TANDEM_DTYPE_OF(ResourceHandle, kResource);
#undef TANDEM_DTYPE_OF

}  // namespace tandem
