#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/variant.h"

namespace tandem {

/// What the Optional ops pass around as a variant: some values, or none.
class OptionalValue final : public VariantValue {
 public:
  OptionalValue() = default;
  explicit OptionalValue(std::vector<Array> components)
      : has_value_(true), components_(std::move(components)) {}

  bool has_value() const { return has_value_; }
  const std::vector<Array>& components() const { return components_; }

  std::string type_name() const override { return "tensorflow::data::Optional"; }

 private:
  bool has_value_ = false;
  std::vector<Array> components_;
};

}  // namespace tandem
