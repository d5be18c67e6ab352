#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

// C++ values of which td::Tensor is made and into which it is read: see its constructors and
// `item`.

namespace tandem::internal {

// ---- Into tensors: sequences and sequences of sequences. ----

template <class R>
struct SequenceOf {};
template <class T, class A>
struct SequenceOf<std::vector<T, A>> {
  using type = T;
};
template <class T, std::size_t N>
struct SequenceOf<std::array<T, N>> {
  using type = T;
};
template <class T, std::size_t N>
struct SequenceOf<std::span<T, N>> {
  using type = std::remove_cv_t<T>;
};

// The element type of the tensor: the integers of C++ by size, texts as strings.
template <class T>
struct StoredAs {};
template <class T>
requires(std::integral<T> && !std::same_as<T, bool>) struct StoredAs<T> {
  template <class Signed, class Unsigned>
  using By = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
  using type = std::conditional_t<
      sizeof(T) == 1, By<std::int8_t, std::uint8_t>,
      std::conditional_t<sizeof(T) == 2, By<std::int16_t, std::uint16_t>,
                         std::conditional_t<sizeof(T) == 4, By<std::int32_t, std::uint32_t>,
                                            By<std::int64_t, std::uint64_t>>>>;
};
template <class T>
requires(std::same_as<T, bool> || std::same_as<T, float> || std::same_as<T, double> ||
         std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>> ||
         std::same_as<T, Half> || std::same_as<T, BFloat16> ||
         std::same_as<T, std::string>) struct StoredAs<T> {
  using type = T;
};
template <>
struct StoredAs<const char*> {
  using type = std::string;
};
template <class R>
requires requires { typename SequenceOf<R>::type; }
struct StoredAs<R> : StoredAs<typename SequenceOf<R>::type> {};

/// std::vector, std::array and std::span of numbers or texts, or of such sequences.
template <class R>
concept Sequence = requires {
  typename SequenceOf<R>::type;
  typename StoredAs<R>::type;
};

// Throws InvalidArgumentError unless the rows of one depth are equally long.
TANDEM_EXPORT void check_row(std::int64_t expected, std::int64_t found);

template <class R>
void measure_rows(const R& values, std::vector<std::int64_t>& dims) {
  dims.push_back(static_cast<std::int64_t>(values.size()));
  if constexpr (Sequence<typename SequenceOf<R>::type>) {
    if (values.size() > 0) measure_rows(*values.begin(), dims);
  }
}

template <class R, class To>
void copy_rows(const R& values, std::span<const std::int64_t> dims, To*& to) {
  check_row(dims.front(), static_cast<std::int64_t>(values.size()));
  for (const auto& value : values) {
    if constexpr (Sequence<typename SequenceOf<R>::type>) {
      copy_rows(value, dims.subspan(1), to);
    } else {
      *to++ = To(value);
    }
  }
}

template <Sequence R>
Array array_of(const R& values) {
  using To = typename StoredAs<R>::type;
  std::vector<std::int64_t> dims;
  measure_rows(values, dims);
  Array array(dtype_of<To>, Shape(std::span<const std::int64_t>(dims)));
  To* to = array.data<To>();
  copy_rows(values, std::span<const std::int64_t>(dims), to);
  return array;
}

// ---- Out of tensors: one number, exactly. ----

/// The first element of an array of real numbers or bools, in the widest type of its kind.
struct AnyNumber {
  enum class Kind : std::uint8_t { kSigned, kUnsigned, kReal } kind;
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  double real = 0;
};
// Throws InvalidArgumentError if the elements are no real numbers.
TANDEM_EXPORT AnyNumber number_of(const Array& array);
[[noreturn]] TANDEM_EXPORT void throw_inexact(const Array& array, std::size_t bytes,
                                              bool has_fraction);

template <class To, class From>
bool fits_exactly(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    if constexpr (std::is_floating_point_v<To>) {
      return value != value || static_cast<From>(static_cast<To>(value)) == value;
    } else {
      // The limits as powers of two, which a double has exactly.
      const From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
      return value >= static_cast<From>(std::numeric_limits<To>::min()) && value < above &&
             static_cast<From>(static_cast<To>(value)) == value;
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    // Beyond its digits a floating type skips integers, and the largest ones round up out of range.
    const To rounded = static_cast<To>(value);
    return rounded < static_cast<To>(std::numeric_limits<From>::max() / 2 + 1) * 2 &&
           static_cast<From>(rounded) == value;
  } else {
    return std::in_range<To>(value);
  }
}

template <class T>
T exact_number(const Array& array) {
  using To = std::conditional_t<
      std::is_same_v<T, bool>, std::uint8_t,
      std::conditional_t<std::is_floating_point_v<T>, T, typename StoredAs<T>::type>>;
  const AnyNumber n = number_of(array);
  const auto read = [&](auto value) {
    if (!fits_exactly<To>(value) || (std::is_same_v<T, bool> && value != 0 && value != 1))
      throw_inexact(array, sizeof(T), std::is_floating_point_v<T>);
    return static_cast<T>(value);
  };
  if (n.kind == AnyNumber::Kind::kSigned) return read(n.integer);
  if (n.kind == AnyNumber::Kind::kUnsigned) return read(n.natural);
  return read(n.real);
}

}  // namespace tandem::internal
