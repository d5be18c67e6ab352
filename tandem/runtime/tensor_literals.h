#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

// The numbers and texts in braces of which a Tensor can be made: see td::Tensor's constructors.

namespace tandem::internal {

// What a row in braces may be of, all of one type.
template <class T>
concept Literal =
    std::is_same_v<T, bool> || std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> ||
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, const char*>;

template <class T>
concept Number = std::is_arithmetic_v<T>;
template <class T>
concept OtherNumber = Number<T> && !Literal<T>;
// The integers that C++ does not promote to int: unsigned, std::size_t, long long.
template <class T>
concept WideInteger = OtherNumber<T> && std::is_integral_v<T> && sizeof(T) >= sizeof(int) &&
                      !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char32_t>;

// Throws InvalidArgumentError if it is above the largest int64.
TANDEM_EXPORT std::int64_t checked_int64(std::uint64_t value);
template <WideInteger T>
std::int64_t as_int64(T value) {
  if constexpr (std::is_unsigned_v<T>) return checked_int64(value);
  return static_cast<std::int64_t>(value);
}

// A number among numbers of other types, or of a type that no tensor's literals have.
struct MixedNumber {
  template <Number T>
  MixedNumber(T value)
      : has_fraction(std::is_floating_point_v<T>),
        is_long(sizeof(T) + std::is_unsigned_v<T> > 4),
        real(static_cast<double>(value)) {
    if constexpr (!std::is_floating_point_v<T>) integer = static_cast<std::int64_t>(value);
  }
  bool has_fraction, is_long;
  double real;
  std::int64_t integer = 0;
};

// What is in the braces, its sizes those of the lists: double as float, const char* as text. T is a
// Literal or a list, or a list of lists, of such. Throws InvalidArgumentError if lists of one depth
// are not equally long.
template <class T>
TANDEM_EXPORT Array literal(std::initializer_list<T> list);

// Such numbers in braces, one after the other.
class TANDEM_EXPORT MixedNumbers {
 public:
  template <class T>
  explicit MixedNumbers(std::initializer_list<T> list) {
    add(list, 0);
  }
  Array array() const;

 private:
  template <class T>
  void add(std::initializer_list<T> list, std::size_t depth) {
    begin_list(list.size(), depth);
    for (const T& part : list) add(part, depth + 1);
  }
  template <class T>
  void add(const T& number, std::size_t) {
    numbers_.emplace_back(number);
  }
  // Throws InvalidArgumentError if one of that depth had another size.
  void begin_list(std::size_t size, std::size_t depth);
  std::vector<MixedNumber> numbers_;
  std::vector<std::int64_t> dims_;
};

}  // namespace tandem::internal
