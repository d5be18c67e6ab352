#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "tandem/core/never_destroyed.h"

namespace tandem::io::proto {

/// A message inside another, absent at first; reading an absent one gives its defaults.
template <class T>
class Sub {
 public:
  Sub() = default;
  Sub(const Sub& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Sub(Sub&&) noexcept = default;
  Sub& operator=(const Sub& other) {
    if (this != &other) *this = Sub(other);
    return *this;
  }
  Sub& operator=(Sub&&) noexcept = default;

  bool has() const { return value_ != nullptr; }
  const T& operator*() const {
    static const NeverDestroyed<T> absent;
    return value_ ? *value_ : *absent;
  }
  const T* operator->() const { return &**this; }
  /// The message, made if absent.
  T& make() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }
  void clear() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

/// A number that is written as four bytes, and one as eight.
enum class Fixed32 : std::uint32_t {};
/// A number of which small negative ones are short too.
enum class Sint64 : std::int64_t {};
enum class Fixed64 : std::uint64_t {};

struct EnumValue {
  const char* name;
  std::int32_t number;
};
using EnumNames = std::span<const EnumValue>;

}  // namespace tandem::io::proto
