#pragma once

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// Output 0: slices of `params` along an axis as `indices` name them, the first batch_dims axes of
/// both together. Throws InvalidArgumentError for an index out of range.
void gather_slices(KernelContext& c, const Array& params, const Array& indices, std::int64_t axis,
                   std::int64_t batch_dims);

/// Output 0: elements or slices of `params` named by the index tuples in the last axis of
/// `indices`.
void gather_tuples(KernelContext& c, const Array& params, const Array& indices);

/// An index of an integer array of any of the index dtypes.
inline std::int64_t index_at(DType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case DType::kInt32: return static_cast<const std::int32_t*>(data)[i];
    case DType::kInt64: return static_cast<const std::int64_t*>(data)[i];
    case DType::kInt16: return static_cast<const std::int16_t*>(data)[i];
    case DType::kUint16: return static_cast<const std::uint16_t*>(data)[i];
    case DType::kUint8: return static_cast<const std::uint8_t*>(data)[i];
    default: return static_cast<const std::int8_t*>(data)[i];
  }
}

/// "[1,2]", as index tuples stand in messages.
std::string tuple_text(DType dtype, const void* data, std::int64_t begin, std::int64_t n);

}  // namespace tandem::cpu
