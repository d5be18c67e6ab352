#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"

namespace tandem {

class Function;

/// A function given as an attribute, shared with its callers.
using FunctionRef = std::shared_ptr<const Function>;

/// The value of an attribute: one of TensorFlow's kinds (int, float, bool, string, type, shape,
/// tensor, func) or a list.
class TANDEM_EXPORT AttrValue {
 public:
  using Storage =
      std::variant<std::monostate, std::int64_t, float, bool, std::string, DType, PartialShape,
                   std::shared_ptr<const Array>, FunctionRef, std::vector<std::int64_t>,
                   std::vector<float>, std::vector<bool>, std::vector<std::string>,
                   std::vector<DType>, std::vector<PartialShape>, std::vector<FunctionRef>>;

  // Out of line: each makes or visits all kinds, which costs an including file a third of a
  // second of compiling where it is inline.
  AttrValue() noexcept;
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();
  template <class Int,
            std::enable_if_t<std::is_integral_v<Int> && !std::is_same_v<Int, bool>, int> = 0>
  AttrValue(Int value) : AttrValue(Integer{static_cast<std::int64_t>(value)}) {}
  AttrValue(float value);
  AttrValue(double value);
  AttrValue(bool value);
  AttrValue(const char* value);
  AttrValue(std::string_view value);
  AttrValue(std::string value);
  AttrValue(DType value);
  AttrValue(PartialShape value);
  AttrValue(const Shape& value);
  AttrValue(Array value);
  AttrValue(FunctionRef value);
  AttrValue(std::vector<std::int64_t> value);
  AttrValue(std::vector<float> value);
  AttrValue(std::vector<bool> value);
  AttrValue(std::vector<std::string> value);
  AttrValue(std::vector<DType> value);
  AttrValue(std::vector<PartialShape> value);
  AttrValue(std::vector<FunctionRef> value);

  const Storage& storage() const { return storage_; }
  bool empty() const { return storage_.index() == 0; }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  /// "int", "list(type)", "func" and so on.
  std::string kind() const;
  /// The text that `td ops` and graph dumps print: `3`, `true`, `"SAME"`, `float`, `[1, 2]`.
  std::string to_string() const;
  bool operator==(const AttrValue& other) const;

 private:
  struct Integer {
    std::int64_t value;
  };
  explicit AttrValue(Integer value);

  Storage storage_;
};

/// Attributes by name, in the order given. Small: look-up is a linear search.
class TANDEM_EXPORT AttrMap {
 public:
  struct Entry {
    std::string name;
    AttrValue value;
  };
  AttrMap() = default;
  AttrMap(std::initializer_list<Entry> entries);

  const AttrValue* find(std::string_view name) const {
    for (const Entry& e : entries_) {
      if (e.name == name) return &e.value;
    }
    return nullptr;
  }
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  /// True if both hold the same names with equal values, in any order.
  bool operator==(const AttrMap& other) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace tandem
