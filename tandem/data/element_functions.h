#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/data/element.h"

namespace tandem::data {

class Dataset;
class DatasetBase;

namespace internal {
/// A component for a callable that takes a dataset there: windows are variants that hold one.
class TANDEM_EXPORT Component {
 public:
  explicit Component(const Tensor& tensor) : tensor_(tensor) {}
  operator const Tensor&() const { return tensor_; }
  /// Throws InvalidArgumentError if it holds none.
  operator Dataset() const;

 private:
  const Tensor& tensor_;
};

template <class F, std::size_t... I>
decltype(auto) call_with_components(F& f, const Element& element, std::index_sequence<I...>) {
  if (element.size() != sizeof...(I)) throw_arity(sizeof...(I), element.size());
  return f(Component(element[I])...);
}

/// Calls `f` on an element as ElementFn does.
template <class F>
decltype(auto) call_on(F& f, const Element& element) {
  constexpr int kArity = arity_of<F>();
  if constexpr (kArity < 0) {
    return f(element);
  } else {
    return spread(f, element, std::make_index_sequence<kArity>());
  }
}

/// The value of a scalar of dtype int32 or int64; throws InvalidArgumentError for others.
TANDEM_EXPORT std::int64_t whole_number(const Tensor& result, const char* what);
template <std::integral T>
std::int64_t whole_number(T result, const char*) {
  return static_cast<std::int64_t>(result);
}

/// Throws InvalidArgumentError: a reduce function takes `wanted` tensors.
[[noreturn]] TANDEM_EXPORT void throw_reduce_arity(std::size_t wanted, const Element& state,
                                                   const Element& element);

/// Calls `f` on an element; it may take datasets for components that hold some.
template <class F>
decltype(auto) call_with_datasets(F& f, const Element& element) {
  constexpr int kTensors = arity_of<F>();
  if constexpr (kTensors < 0) {
    return f(element);
  } else {
    constexpr auto kIndices = std::make_index_sequence<static_cast<std::size_t>(kTensors)>();
    if constexpr (tandem::internal::takes<F>(kIndices)) {
      return spread(f, element, kIndices);
    } else {
      return call_with_components(f, element, kIndices);
    }
  }
}
}  // namespace internal

/// A function from elements to datasets, for flat_map and interleave: any callable over tensors, or
/// one `const td::data::Element&`, that returns a td::data::Dataset. A parameter may be a Dataset
/// where the component holds one: `window(3).flat_map([](Dataset w) { return w.batch(3); })`.
class DatasetFn {
 public:
  template <class F>
  requires(!std::same_as<std::decay_t<F>, DatasetFn>)
      DatasetFn(F callable)  // NOLINT: implicit, so that lambdas can be passed
      : arity_(internal::arity_of<F>()),
        call_([f = std::move(callable)](const Element& element) mutable {
          return internal::call_with_datasets(f, element).base();
        }) {}

  /// Tensors that the callable takes; -1 if it takes whole elements.
  int arity() const { return arity_; }
  std::shared_ptr<const DatasetBase> operator()(const Element& element) const {
    return call_(element);
  }

 private:
  int arity_;
  std::function<std::shared_ptr<const DatasetBase>(const Element&)> call_;
};

/// A function from elements to whole numbers, such as a key or a length: the callable returns an
/// integer, or a scalar tensor of dtype int32 or int64.
class ElementNumber {
 public:
  template <class F>
  requires(!std::same_as<std::decay_t<F>, ElementNumber>)
      ElementNumber(F callable)  // NOLINT: implicit, so that lambdas can be passed
      : arity_(internal::arity_of<F>()),
        call_([f = std::move(callable)](const Element& element) mutable {
          return internal::whole_number(internal::call_on(f, element), "key_func");
        }) {}

  int arity() const { return arity_; }
  std::int64_t operator()(const Element& element) const { return call_(element); }

 private:
  int arity_;
  std::function<std::int64_t(const Element&)> call_;
};

/// A function for scan, from a state and an element to the next state and what comes out:
///
///     [](td::Tensor sum, td::Tensor x) { return std::pair(sum + x, sum); }
///     [](const td::data::Element& state, const td::data::Element& x) { return std::pair(…); }
class ScanFn {
 public:
  template <class F>
  requires(!std::same_as<std::decay_t<F>, ScanFn>)
      ScanFn(F callable)  // NOLINT: implicit, so that lambdas can be passed
      : call_([f = std::move(callable)](Element& state, Element& element) mutable {
          auto result = call(f, state, element);
          Element next, out;
          internal::put(next, std::move(result.first));
          internal::put(out, std::move(result.second));
          internal::check_defined(next);
          internal::check_defined(out);
          state = std::move(next);
          element = std::move(out);
        }) {}

  /// Replaces both.
  void apply(Element& state, Element& element) const { call_(state, element); }

 private:
  template <class F>
  static auto call(F& f, const Element& state, const Element& element) {
    if constexpr (std::is_invocable_v<F&, const Element&, const Element&>) {
      return f(state, element);
    } else {
      if (state.size() != 1) internal::throw_arity(1, state.size());
      if (element.size() != 1) internal::throw_arity(1, element.size());
      return f(state[0], element[0]);
    }
  }
  std::function<void(Element&, Element&)> call_;
};

/// A function for reduce, from a state and an element to the next state: a callable that takes the
/// tensors of the state and then those of the element, or both as elements.
///
///     [](td::Tensor sum, td::Tensor x) { return sum + x; }
///     [](td::Tensor sum, td::Tensor x, td::Tensor y) { return sum + x * y; }
///     [](const td::data::Element& state, const td::data::Element& x) { return …; }
class ReduceFn {
 public:
  template <class F>
  requires(!std::same_as<std::decay_t<F>, ReduceFn>)
      ReduceFn(F callable)  // NOLINT: implicit, so that lambdas can be passed
      : call_([f = std::move(callable)](const Element& state, const Element& element) mutable {
          Element next;
          if constexpr (std::is_invocable_v<F&, const Element&, const Element&>) {
            internal::put(next, f(state, element));
          } else {
            Element all = state;
            all.insert(all.end(), element.begin(), element.end());
            if (all.size() != kTaken<F>) internal::throw_reduce_arity(kTaken<F>, state, element);
            internal::put(next, internal::spread(f, all, std::make_index_sequence<kTaken<F>>()));
          }
          internal::check_defined(next);
          return next;
        }) {}

  Element operator()(const Element& state, const Element& element) const {
    return call_(state, element);
  }

 private:
  template <class F>
  static constexpr auto kTaken = static_cast<std::size_t>(internal::arity_of<F, 2>());
  std::function<Element(const Element&, const Element&)> call_;
};

}  // namespace tandem::data
