#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/element.h"
#include "tandem/ops/example_ops.h"

/// Elements whose components have names: what tf.data has as dictionaries and nests of them.
///
/// An element is a flat list of tensors in any case; the dataset knows the names. A component of a
/// nest is named by its path: of `zip({a, b})`, whose elements are pairs, "0/image" is the image of
/// a's, and "1" the only component of b's.
namespace tandem::data {

class Dataset;
class DatasetBase;

/// A map of tensors that says which names there are where one is asked for that is not.
class TANDEM_EXPORT TensorMap : public std::map<std::string, Tensor> {
 public:
  using Base = std::map<std::string, Tensor>;
  using Base::Base;
  TensorMap() = default;
  TensorMap(Base tensors) : Base(std::move(tensors)) {}  // NOLINT: implicit, as it is one

  /// Throws NotFoundError.
  Tensor& at(const std::string& name);
  const Tensor& at(const std::string& name) const;
  /// An undefined tensor if it is new; an error of using that reports this.
  Tensor& operator[](const std::string& name);
};
/// One for each component, "" where it has none; empty if no component has one.
using Names = std::vector<std::string>;

/// The components by their names; throws InvalidArgumentError unless all have one.
TANDEM_EXPORT TensorMap to_map(const Names& names, const Element& element);

namespace internal {

template <class T>
inline constexpr bool kHasMap = std::is_base_of_v<TensorMap::Base, std::decay_t<T>>;
template <class A, class B>
inline constexpr bool kHasMap<std::pair<A, B>> = kHasMap<A> || kHasMap<B>;
template <class... T>
inline constexpr bool kHasMap<std::tuple<T...>> = (kHasMap<T> || ...);
template <>
inline constexpr bool kHasMap<io::ParsedExamples> = true;

/// The part of an element that is parameter `index` of `count` of a function.
TANDEM_EXPORT TensorMap map_part(const Names& names, const Element& element, std::size_t index,
                                 std::size_t count);
TANDEM_EXPORT Tensor tensor_part(const Names& names, const Element& element, std::size_t index);
[[noreturn]] TANDEM_EXPORT void throw_names_differ(const Names& first, const Names& now);

template <class T>
T part(const Names& names, const Element& element, std::size_t index, std::size_t count) {
  if constexpr (kHasMap<T>) {
    return map_part(names, element, index, count);
  } else {
    return tensor_part(names, element, index);
  }
}

template <class F, class Arguments>
struct CallWithParts;
template <class F, class... A>
struct CallWithParts<F, std::tuple<A...>> {
  using Result = std::invoke_result_t<F&, A...>;
  template <std::size_t... I>
  static Result call(F& f, const Names& names, const Element& element, std::index_sequence<I...>) {
    std::tuple<A...> parts{part<A>(names, element, I, sizeof...(A))...};
    return std::apply(f, std::move(parts));
  }
};

template <class F, class = void>
inline constexpr bool kTakesMap = false;
template <class F>
inline constexpr bool kTakesMap<F, std::void_t<decltype(&F::operator())>> = kHasMap<ArgumentsOf<F>>;

/// Calls a function that takes maps, or any other, on an element with names.
template <class F>
decltype(auto) call_with_names(F& f, const Names& names, const Element& element) {
  if constexpr (kTakesMap<F>) {
    using Arguments = ArgumentsOf<F>;
    return CallWithParts<F, Arguments>::call(
        f, names, element, std::make_index_sequence<std::tuple_size_v<Arguments>>());
  } else if constexpr (arity_of<F>() < 0) {
    return f(element);
  } else {
    return spread(f, element, std::make_index_sequence<static_cast<std::size_t>(arity_of<F>())>());
  }
}
template <class F>
using ResultWithNames = std::decay_t<decltype(call_with_names(
    std::declval<F&>(), std::declval<const Names&>(), std::declval<const Element&>()))>;

/// Callables that have to do with maps.
template <class F, class Wrapper>
concept TakesNames = !std::same_as<F, Wrapper> && kTakesMap<F>;
template <class F, class Wrapper>
constexpr bool names_things() {
  if constexpr (std::is_same_v<F, Wrapper>) {
    return false;
  } else if constexpr (kTakesMap<F>) {
    return true;
  } else {
    return kHasMap<ResultWithNames<F>>;
  }
}
template <class F, class Wrapper>
concept NamesThings = names_things<F, Wrapper>();

/// The names that a function's results have: known after its first call, and the same ever after.
/// Thread-safe.
class TANDEM_EXPORT ResultNames {
 public:
  bool known() const;
  const Names& get() const;
  /// Throws InvalidArgumentError for other names than before.
  void set(Names names);

 private:
  mutable std::mutex mutex_;
  Names names_;
  bool known_ = false;
};
/// The dataset's components by these names.
TANDEM_EXPORT Dataset with_names(const Dataset& dataset, std::shared_ptr<ResultNames> names);
TANDEM_EXPORT const Names& names_of(const DatasetBase& dataset);
TANDEM_EXPORT Dataset slices_of(const TensorMap& components);

/// Lays a function's result out flat, with the paths of its parts.
inline void put_named(Tensor tensor, const std::string& path, Names& names, Element& out) {
  names.push_back(path);
  out.push_back(std::move(tensor));
}
inline void put_named(TensorMap::Base map, const std::string& path, Names& names, Element& out) {
  for (auto& [name, tensor] : map) {
    put_named(std::move(tensor), path.empty() ? name : path + "/" + name, names, out);
  }
}
inline void put_named(Element list, const std::string& path, Names& names, Element& out) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    put_named(std::move(list[i]), (path.empty() ? "" : path + "/") + std::to_string(i), names, out);
  }
}
/// What parse_single_example found, features in several tensors by the names of these.
TANDEM_EXPORT void put_named(io::ParsedExamples found, const std::string& path, Names& names,
                             Element& out);
template <class... T>
void put_named(std::tuple<T...> tuple, const std::string& path, Names& names, Element& out);
template <class A, class B>
void put_named(std::pair<A, B> pair, const std::string& path, Names& names, Element& out) {
  const std::string inside = path.empty() ? "" : path + "/";
  put_named(std::move(pair.first), inside + "0", names, out);
  put_named(std::move(pair.second), inside + "1", names, out);
}
template <class... T>
void put_named(std::tuple<T...> tuple, const std::string& path, Names& names, Element& out) {
  const std::string inside = path.empty() ? "" : path + "/";
  std::size_t i = 0;
  std::apply(
      [&](T&... member) {
        (put_named(std::move(member), inside + std::to_string(i++), names, out), ...);
      },
      tuple);
}

/// A function on the elements of `input`, which puts the names of its results into `names`.
template <class F>
auto on_names(F f, std::shared_ptr<const DatasetBase> input, std::shared_ptr<ResultNames> names) {
  return [f = std::move(f), input = std::move(input),
          names = std::move(names)](const Element& element) mutable {
    auto result = call_with_names(f, names_of(*input), element);
    Names found;
    Element out;
    put_named(std::move(result), "", found, out);
    if (!kHasMap<decltype(result)>) found.clear();
    names->set(std::move(found));
    return out;
  };
}
template <class F>
auto on_names(F f, std::shared_ptr<const DatasetBase> input) {
  return [f = std::move(f), input = std::move(input)](const Element& element) mutable {
    return call_with_names(f, names_of(*input), element);
  };
}

}  // namespace internal
}  // namespace tandem::data
