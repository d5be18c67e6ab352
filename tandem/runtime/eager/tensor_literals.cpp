#include "tandem/runtime/tensor_literals.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "tandem/core/error.h"
#include "tandem/core/shape.h"

namespace tandem::internal {
namespace {

template <class T>
struct Leaf {
  using type = T;
};
template <class T>
struct Leaf<std::initializer_list<T>> : Leaf<T> {};
template <>
struct Leaf<double> {
  using type = float;
};
template <>
struct Leaf<const char*> {
  using type = std::string;
};

// Braces hold `size` parts: of one axis all as many.
void add_braces(std::size_t size, std::vector<std::int64_t>& dims, std::size_t axis) {
  if (dims.size() == axis) dims.push_back(static_cast<std::int64_t>(size));
  if (dims[axis] == static_cast<std::int64_t>(size)) return;
  throw InvalidArgumentError(cat("The rows of a tensor must have equal lengths, but one has ",
                                 dims[axis], " elements and another ", size, "."));
}

template <class T>
void measure(const T&, std::vector<std::int64_t>&, std::size_t) {}
template <class T>
void measure(std::initializer_list<T> list, std::vector<std::int64_t>& dims, std::size_t axis) {
  add_braces(list.size(), dims, axis);
  for (const T& element : list) measure(element, dims, axis + 1);
}

template <class To, class From>
void flatten(const From& value, To*& to) {
  *to++ = static_cast<To>(value);
}
template <class To, class T>
void flatten(std::initializer_list<T> list, To*& to) {
  for (const T& element : list) flatten(element, to);
}

template <class To>
Array from_mixed_as(const std::vector<MixedNumber>& numbers, const Shape& shape) {
  Array a(dtype_of<To>, shape);
  std::transform(numbers.begin(), numbers.end(), a.data<To>(), [](const MixedNumber& n) {
    return std::is_floating_point_v<To> ? static_cast<To>(n.real) : static_cast<To>(n.integer);
  });
  return a;
}

}  // namespace

std::int64_t checked_int64(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgumentError(cat("The number ", value,
                                   " is too large for an int64 tensor. td::scalar<std::uint64_t> "
                                   "makes one of uint64."));
  }
  return static_cast<std::int64_t>(value);
}

template <class T>
Array literal(std::initializer_list<T> list) {
  using To = typename Leaf<T>::type;
  std::vector<std::int64_t> dims;
  measure(list, dims, 0);
  Array a(dtype_of<To>, Shape(std::span<const std::int64_t>(dims)));
  To* to = a.data<To>();
  flatten(list, to);
  return a;
}

#define TANDEM_LITERAL(T)                                                  \
  template Array literal(std::initializer_list<T>);                        \
  template Array literal(std::initializer_list<std::initializer_list<T>>); \
  template Array literal(std::initializer_list<std::initializer_list<std::initializer_list<T>>>);
TANDEM_LITERAL(bool)
TANDEM_LITERAL(int)
TANDEM_LITERAL(std::int64_t)
TANDEM_LITERAL(float)
TANDEM_LITERAL(double)
TANDEM_LITERAL(const char*)
#undef TANDEM_LITERAL

void MixedNumbers::begin_list(std::size_t size, std::size_t depth) {
  add_braces(size, dims_, depth);
}

Array MixedNumbers::array() const {
  bool has_fraction = false, is_long = false, wrapped = false;
  for (const auto& n : numbers_) {
    has_fraction |= n.has_fraction;
    is_long |= n.is_long;
    wrapped |= n.real > 0 && n.integer < 0;
  }
  const Shape shape{std::span<const std::int64_t>(dims_)};
  if (has_fraction) return from_mixed_as<float>(numbers_, shape);
  if (!is_long) return from_mixed_as<std::int32_t>(numbers_, shape);
  if (wrapped) {
    throw InvalidArgumentError(
        "A number in the braces of a tensor is above 2^63 - 1, which int64 cannot hold; "
        "td::Tensor::from(values) makes a uint64 tensor.");
  }
  return from_mixed_as<std::int64_t>(numbers_, shape);
}

}  // namespace tandem::internal
