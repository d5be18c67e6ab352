#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Turns structures of tensors into a flat list and back: Tensor, std::vector, std::array,
/// std::pair, std::tuple, std::optional, std::map<std::string, …> and nestings of them. Values that
/// are no tensors (numbers, strings, enums) are part of the structure. Specialise `Structure` for a
/// type of your own.
class StructureWriter {
 public:
  std::vector<Tensor> tensors;
  std::string key;  ///< describes everything but the tensors: equal keys, equal structures
};

class StructureReader {
 public:
  explicit StructureReader(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  Tensor next() {
    if (position_ == tensors_.size())
      throw InternalError("a structure of tensors has fewer tensors than expected");
    return std::move(tensors_[position_++]);
  }

 private:
  std::vector<Tensor> tensors_;
  std::size_t position_ = 0;
};

template <class T, class = void>
struct Structure {
  static_assert(
      std::is_convertible_v<const T&, Tensor> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
          std::is_convertible_v<const T&, std::string>,
      "arguments and results of functions are tensors, numbers, strings, or structures of them");
};

template <>
struct Structure<Tensor> {
  static void write(const Tensor& t, StructureWriter& w) {
    w.tensors.push_back(t);
    w.key += 'T';
  }
  static Tensor read(const Tensor&, StructureReader& r) { return r.next(); }
};

template <class T>
struct Structure<T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>> {
  static void write(const T& value, StructureWriter& w) {
    if constexpr (std::is_enum_v<T>) {
      w.key += std::to_string(static_cast<long long>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      std::ostringstream exact;
      exact << std::hexfloat << value;
      w.key += exact.str();
    } else {
      w.key += std::to_string(value);
    }
    w.key += ';';
  }
  static T read(const T& like, StructureReader&) { return like; }
};

template <>
struct Structure<std::string> {
  static void write(const std::string& value, StructureWriter& w) {
    w.key += std::to_string(value.size()) + ":" + value;
  }
  static std::string read(const std::string& like, StructureReader&) { return like; }
};

namespace internal {

template <class List>
void write_list(char open, const List& list, StructureWriter& w) {
  w.key += open + std::to_string(list.size()) + ",";
  for (const auto& element : list) Structure<typename List::value_type>::write(element, w);
}

}  // namespace internal

template <class T>
struct Structure<std::vector<T>> {
  static void write(const std::vector<T>& list, StructureWriter& w) {
    internal::write_list('[', list, w);
  }
  static std::vector<T> read(const std::vector<T>& like, StructureReader& r) {
    std::vector<T> list;
    for (const T& element : like) list.push_back(Structure<T>::read(element, r));
    return list;
  }
};

template <class T, std::size_t N>
struct Structure<std::array<T, N>> {
  static void write(const std::array<T, N>& list, StructureWriter& w) {
    internal::write_list('a', list, w);
  }
  static std::array<T, N> read(const std::array<T, N>& like, StructureReader& r) {
    std::array<T, N> list = like;
    for (T& element : list) element = Structure<T>::read(element, r);
    return list;
  }
};

template <class T>
struct Structure<std::optional<T>> {
  static void write(const std::optional<T>& value, StructureWriter& w) {
    w.key += value ? '?' : '0';
    if (value) Structure<T>::write(*value, w);
  }
  static std::optional<T> read(const std::optional<T>& like, StructureReader& r) {
    if (!like) return std::nullopt;
    return Structure<T>::read(*like, r);
  }
};

template <class A, class B>
struct Structure<std::pair<A, B>> {
  static void write(const std::pair<A, B>& p, StructureWriter& w) {
    Structure<A>::write(p.first, w);
    Structure<B>::write(p.second, w);
  }
  static std::pair<A, B> read(const std::pair<A, B>& like, StructureReader& r) {
    A a = Structure<A>::read(like.first, r);
    B b = Structure<B>::read(like.second, r);
    return {std::move(a), std::move(b)};
  }
};

template <class... Ts>
struct Structure<std::tuple<Ts...>> {
  static void write(const std::tuple<Ts...>& t, StructureWriter& w) {
    w.key += '(';
    std::apply([&](const Ts&... e) { (Structure<Ts>::write(e, w), ...); }, t);
  }
  static std::tuple<Ts...> read(const std::tuple<Ts...>& like, StructureReader& r) {
    return std::apply(
        [&](const Ts&... e) { return std::tuple<Ts...>{Structure<Ts>::read(e, r)...}; }, like);
  }
};

template <class T>
struct Structure<std::map<std::string, T>> {
  static void write(const std::map<std::string, T>& map, StructureWriter& w) {
    w.key += '{' + std::to_string(map.size()) + ",";
    for (const auto& [name, value] : map) {
      Structure<std::string>::write(name, w);
      Structure<T>::write(value, w);
    }
  }
  static std::map<std::string, T> read(const std::map<std::string, T>& like, StructureReader& r) {
    std::map<std::string, T> map;
    for (const auto& [name, value] : like) map.emplace(name, Structure<T>::read(value, r));
    return map;
  }
};

}  // namespace tandem
