#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/ref.h"

namespace tandem {

/// Base of what an element of a kVariant array may hold, such as a list of tensors. Immutable once
/// shared.
class TANDEM_EXPORT VariantValue : public RefCounted {
 public:
  virtual std::string type_name() const = 0;
  virtual std::string debug_string() const { return type_name(); }
  ~VariantValue() override;
};

/// The element type of DType::kVariant: a shared reference to any `VariantValue`, empty by default.
class TANDEM_EXPORT Variant {
 public:
  Variant() = default;
  Variant(Ref<VariantValue> value) : value_(std::move(value)) {}
  bool empty() const { return !value_; }
  VariantValue* get() const { return value_.get(); }
  /// The value as a T, or null if it holds something else.
  template <class T>
  T* as() const {
    return dynamic_cast<T*>(value_.get());
  }

 private:
  Ref<VariantValue> value_;
};

}  // namespace tandem
