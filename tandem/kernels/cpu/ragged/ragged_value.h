#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/variant.h"

namespace tandem::cpu {

/// What RaggedTensorToVariant puts into a variant: a ragged array, or one of its rows.
struct Ragged final : VariantValue {
  using Splits = std::vector<std::vector<std::int64_t>>;

  Ragged(DType splits_dtype_, Splits splits_, Array values_)
      : splits_dtype(splits_dtype_), splits(std::move(splits_)), values(std::move(values_)) {}
  std::string type_name() const override { return "RaggedTensorVariant"; }

  DType splits_dtype;
  Splits splits;
  Array values;
};

}  // namespace tandem::cpu
