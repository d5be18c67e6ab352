#include "tandem/graph/internal/attr_hash.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tandem/core/attr.h"

namespace tandem::passes {
namespace {

std::size_t combined(std::size_t a, std::size_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
}

template <class T>
std::size_t hash_of_one(const T& value) {
  if constexpr (std::is_same_v<T, PartialShape>) {
    std::size_t hash = value.has_rank() ? 1 : 2;
    for (const std::int64_t dim : value.dims())
      hash = combined(hash, std::hash<std::int64_t>()(dim));
    return hash;
  } else if constexpr (std::is_same_v<T, std::shared_ptr<const Array>> ||
                       std::is_same_v<T, FunctionRef> || std::is_same_v<T, std::monostate>) {
    return 0;
  } else {
    return std::hash<T>()(value);  // 0 and -0, which are equal, have one hash
  }
}

struct HashOf {
  template <class T>
  std::size_t operator()(const T& value) const {
    return hash_of_one(value);
  }
  template <class T>
  std::size_t operator()(const std::vector<T>& list) const {
    std::size_t hash = list.size();
    for (const T& value : list) hash = combined(hash, hash_of_one(value));
    return hash;
  }
  std::size_t operator()(const std::vector<bool>& list) const {
    return std::hash<std::vector<bool>>()(list);
  }
};

}  // namespace

std::size_t hash_of(const AttrMap& attrs) {
  std::size_t sum = 0;
  for (const AttrMap::Entry& entry : attrs)
    sum +=
        combined(std::hash<std::string>()(entry.name), std::visit(HashOf(), entry.value.storage()));
  return sum;
}

std::size_t hash_of(const Array& value) {
  if (value.dtype() == DType::kString) {
    std::size_t hash = 0;
    for (std::int64_t i = 0; i < value.num_elements(); ++i)
      hash = combined(hash, std::hash<std::string>()(value.data<std::string>()[i]));
    return hash;
  }
  if (is_object(value.dtype())) return 0;
  return std::hash<std::string_view>()(
      {static_cast<const char*>(value.raw_data()), value.num_bytes()});
}

}  // namespace tandem::passes
