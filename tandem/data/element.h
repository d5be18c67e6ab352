#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/callable_arity.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::data {

namespace internal {
/// Throws OutOfRangeError: an element of `size` components has none at `index`.
[[noreturn]] TANDEM_EXPORT void throw_no_component(std::size_t index, std::size_t size);
}  // namespace internal

/// One element of a dataset: its component tensors in order, such as {image, label}. A vector of
/// them whose indices are checked: OutOfRangeError where there is no such component.
class Element : public std::vector<Tensor> {
 public:
  using std::vector<Tensor>::vector;
  Element() = default;
  Element(std::vector<Tensor> components)  // NOLINT: implicit, functions may return either
      : std::vector<Tensor>(std::move(components)) {}

  Tensor& operator[](std::size_t index) {
    check(index);
    return std::vector<Tensor>::operator[](index);
  }
  const Tensor& operator[](std::size_t index) const {
    check(index);
    return std::vector<Tensor>::operator[](index);
  }
  Tensor& at(std::size_t index) { return (*this)[index]; }
  const Tensor& at(std::size_t index) const { return (*this)[index]; }

 private:
  void check(std::size_t index) const {
    if (index >= size()) internal::throw_no_component(index, size());
  }
};

}  // namespace tandem::data

namespace tandem::internal {
template <class... Tensors>
inline constexpr int kArityOf<std::tuple<data::Element, Tensors...>> = -1;
}  // namespace tandem::internal

namespace tandem {
template <>
struct Structure<data::Element> : Structure<std::vector<Tensor>> {};
}  // namespace tandem

namespace tandem::data {

/// What is known of one component of every element.
struct TensorSpec {
  DType dtype = DType::kInvalid;  ///< kInvalid: not known
  PartialShape shape;             ///< {}: any; a scalar's is PartialShape::scalar()
  bool operator==(const TensorSpec&) const = default;
};
using ElementSpec = std::vector<TensorSpec>;

/// "(float[8,8,1], int32[])".
TANDEM_EXPORT std::string to_string(const ElementSpec& spec);
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const TensorSpec& spec);
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const ElementSpec& spec);

/// A function on elements, made of any callable over tensors:
///
///     [](td::Tensor x) { return x * 2; }                                  // one component
///     [](td::Tensor x, td::Tensor y) { return std::pair(x / 255, y); }    // two
///     [](const td::data::Element& e) { return td::data::Element{e[0]}; }  // any number
///
/// What it returns may also be a std::tuple or a std::array of tensors. It runs where the elements
/// are consumed or on threads of the pipeline, under the thread context of the thread that began
/// the iteration; no gradient tape records it. A callable that holds nothing (a lambda without
/// captures, a function, a td::function) is traced once where that can be done, and its graph then
/// runs for every element: MapOptions::traced says when.
class ElementFn {
 public:
  template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, ElementFn>, int> = 0>
  ElementFn(F callable);  // NOLINT: implicit, so that lambdas can be passed

  /// Tensors that the callable takes; -1 if it takes whole elements.
  int arity() const { return arity_; }
  /// Replaces the element by the callable's result. Throws InvalidArgumentError if a tensor of that
  /// is undefined.
  void apply(Element& element) const;
  /// Whether the callable holds nothing that could differ from call to call.
  bool stateless() const { return stateless_; }
  /// This function; `stateless`: its callable holds only what is the same in each call.
  ElementFn with_stateless(bool stateless) const {
    ElementFn other = *this;
    other.stateless_ = stateless;
    return other;
  }
  /// This function, computed by another callable.
  ElementFn with_implementation(std::function<void(Element&)> apply) const {
    ElementFn other = *this;
    other.apply_ = std::move(apply);
    return other;
  }
  [[deprecated("use with_stateless")]] ElementFn holding_nothing(bool stateless) const {
    return with_stateless(stateless);
  }
  [[deprecated("use with_implementation")]] ElementFn by(
      std::function<void(Element&)> apply) const {
    return with_implementation(std::move(apply));
  }

 private:
  int arity_;
  bool stateless_;
  std::function<void(Element&)> apply_;
};

/// A condition on elements: like ElementFn, but the callable returns a bool or a scalar tensor of
/// dtype bool.
class ElementPredicate {
 public:
  template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, ElementPredicate>, int> = 0>
  ElementPredicate(F callable);  // NOLINT: implicit, so that lambdas can be passed

  int arity() const { return arity_; }
  bool test(const Element& element) const { return test_(element); }
  /// The predicate as a function whose result is a tensor, if the callable's is one: it may be
  /// traced.
  const std::optional<ElementFn>& function() const { return function_; }
  /// Like ElementFn::with_stateless.
  ElementPredicate with_stateless(bool stateless) const {
    ElementPredicate other = *this;
    if (function_) other.function_ = function_->with_stateless(stateless);
    return other;
  }

 private:
  int arity_;
  std::function<bool(const Element&)> test_;
  std::optional<ElementFn> function_;
};

// ---- How callables become functions on elements. ----

namespace internal {

/// Throws InvalidArgumentError: the callable takes `wanted` tensors, the element has `given`.
[[noreturn]] TANDEM_EXPORT void throw_arity(std::size_t wanted, std::size_t given);
/// Throws InvalidArgumentError for `tuples<wanted>()` of elements of another size.
[[noreturn]] TANDEM_EXPORT void throw_tuple_size(std::size_t wanted, std::size_t given);
/// The value of a predicate's result; throws InvalidArgumentError unless it is a scalar of dtype
/// bool.
TANDEM_EXPORT bool truth(const Tensor& result);
inline bool truth(bool result) { return result; }

/// Throws InvalidArgumentError: what a function returned has an undefined tensor there.
[[noreturn]] TANDEM_EXPORT void throw_undefined(std::size_t component);
inline void check_defined(const Element& element) {
  for (std::size_t i = 0; i < element.size(); ++i) {
    if (!element[i].defined()) throw_undefined(i);
  }
}

using tandem::internal::ArgumentsOf;
using tandem::internal::arity_of;

template <class F>
inline constexpr bool kStateless =
    std::is_empty_v<F> || std::is_function_v<std::remove_pointer_t<F>>;
template <class G>
inline constexpr bool kStateless<TracedFunction<G>> = true;

// Whether a condition's result is a tensor, not a bool.
template <class F, std::size_t... I>
constexpr bool gives_tensor(std::index_sequence<I...>) {
  return std::is_same_v<
      std::decay_t<std::invoke_result_t<F&, decltype((void(I), std::declval<Tensor>()))...>>,
      Tensor>;
}
template <class F>
constexpr bool gives_tensor() {
  if constexpr (arity_of<F>() < 0) {
    return std::is_same_v<std::decay_t<std::invoke_result_t<F&, const Element&>>, Tensor>;
  } else {
    return gives_tensor<F>(std::make_index_sequence<static_cast<std::size_t>(arity_of<F>())>());
  }
}

inline void put(Element& to, Tensor tensor) { to.push_back(std::move(tensor)); }
inline void put(Element& to, Element list) {
  for (Tensor& tensor : list) to.push_back(std::move(tensor));
}
template <class A, class B>
void put(Element& to, std::pair<A, B> pair) {
  put(to, std::move(pair.first));
  put(to, std::move(pair.second));
}
template <class... T>
void put(Element& to, std::tuple<T...> tuple) {
  std::apply([&](T&... member) { (put(to, std::move(member)), ...); }, tuple);
}
template <std::size_t N>
void put(Element& to, std::array<Tensor, N> list) {
  for (Tensor& tensor : list) to.push_back(std::move(tensor));
}
template <class T>
requires(!std::is_convertible_v<T, Tensor> &&
         !std::is_convertible_v<T, Element>) void put(Element&, const T&) {
  static_assert(sizeof(T) == 0,
                "What a function on elements returns is a td::Tensor, a std::pair, std::tuple or "
                "std::array of tensors, a td::data::Element or a td::data::TensorMap. Of a "
                "td::RaggedTensor or what td::strings::split gives, return to_tensor(), or the "
                "values of the only row.");
}

template <class F, class E, std::size_t... I>
decltype(auto) spread(F& callable, E&& element, std::index_sequence<I...> indices) {
  if (element.size() != sizeof...(I)) throw_arity(sizeof...(I), element.size());
  return tandem::internal::call_spread(callable, std::forward<E>(element), indices);
}

}  // namespace internal

inline void ElementFn::apply(Element& element) const {
  apply_(element);
  internal::check_defined(element);
}

template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, ElementFn>, int>>
ElementFn::ElementFn(F callable)
    : arity_(internal::arity_of<F>()), stateless_(internal::kStateless<F>) {
  apply_ = [f = std::move(callable)](Element& element) mutable {
    constexpr int kArity = internal::arity_of<F>();
    if constexpr (kArity < 0) {
      auto result = f(element);
      element.clear();
      internal::put(element, std::move(result));
    } else {
      auto result = internal::spread(f, element, std::make_index_sequence<kArity>());
      element.clear();
      internal::put(element, std::move(result));
    }
  };
}

template <class F, std::enable_if_t<!std::is_same_v<std::decay_t<F>, ElementPredicate>, int>>
ElementPredicate::ElementPredicate(F callable) : arity_(internal::arity_of<F>()) {
  if constexpr (internal::gives_tensor<F>()) function_.emplace(callable);
  test_ = [f = std::move(callable)](const Element& element) mutable {
    constexpr int kArity = internal::arity_of<F>();
    if constexpr (kArity < 0) {
      return internal::truth(f(element));
    } else {
      return internal::truth(internal::spread(f, element, std::make_index_sequence<kArity>()));
    }
  };
}

}  // namespace tandem::data
