#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/runtime/tensor.h"

namespace tandem::internal {

/// The value of a concrete tensor, or of a constant while tracing; null if it is not known yet.
const Array* known_value(const Tensor& tensor);

/// The integers of an int32 or int64 tensor whose value is known.
std::optional<std::vector<std::int64_t>> known_ints(const Tensor& tensor);

/// The sizes of a tensor whose shape is fully known.
std::optional<std::vector<std::int64_t>> known_dims(const Tensor& tensor);

/// A vector of dtype int32 or int64.
Tensor int_vector(const std::vector<std::int64_t>& values, DType dtype);
/// An integer as a scalar: int32 if it fits, else int64.
Tensor index_scalar(std::int64_t value);
/// A scalar of any number type.
Tensor int_scalar(std::int64_t value, DType dtype);

/// The only output of an op called by name: for gradients in ops of other families.
Tensor op1(std::string_view name, std::initializer_list<Tensor> inputs, const AttrMap& attrs = {});

}  // namespace tandem::internal
