#pragma once

// Descriptors of the stand-in for cuDNN: attributes by name, and what they say of tensors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/kernels/cuda/cudnn/cudnn_api.h"

#include "tests/cuda/library_stand_in.h"

namespace stand_in {

using Shape = std::vector<std::int64_t>;

struct Data;
struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<Data>> descriptors;
};
struct Graph;
struct Data {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  std::int64_t engine = 0;             // of engines, configurations and plans
  std::shared_ptr<const Graph> graph;  // of graphs, heuristics, engines, configurations and plans

  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(static_cast<std::size_t>(found->second.count));
    if (found->second.bytes.size() != values.size() * sizeof(T)) return {};
    std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
    return values;
  }
  template <class T>
  std::optional<T> one(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    T value{};
    if (found == attributes.end() || found->second.count != 1 ||
        found->second.bytes.size() != sizeof(T))
      return std::nullopt;
    std::memcpy(&value, found->second.bytes.data(), sizeof(T));
    return value;
  }
  const Data* part(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() || found->second.descriptors.size() != 1
               ? nullptr
               : found->second.descriptors[0].get();
  }
};

inline std::shared_ptr<Data>& data_of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<std::shared_ptr<Data>*>(descriptor);
}

inline std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_INT64: return sizeof(std::int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void*);
    default: return sizeof(int);
  }
}

struct Tensor {
  Number number = Number::kFloat;
  Shape sizes, strides;
  std::int64_t id = 0, alignment = 1;
  bool is_virtual = false, is_by_value = false;

  std::size_t bytes() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    return static_cast<std::size_t>(last + 1) * size_of(number);
  }
  // As of a volume: batch, channel, plane, row, column. Axes of one entry are at 0.
  std::int64_t offset(const std::array<std::int64_t, 5>& at) const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::int64_t place = at[i < 2 ? i : i + 5 - sizes.size()];
      offset += (sizes[i] == 1 ? 0 : place) * strides[i];
    }
    return offset;
  }
  std::int64_t size(std::size_t axis) const {  // of a volume
    if (axis < 2) return sizes[axis];
    const std::size_t missing = 5 - sizes.size();
    return axis - 2 < missing ? 1 : sizes[axis - missing];
  }
};

inline std::optional<Tensor> tensor_of(const Data* data) {
  if (!data || data->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return std::nullopt;
  Tensor t;
  t.sizes = data->list<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  t.strides = data->list<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const auto type = data->one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  const auto id = data->one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  const auto alignment = data->one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  if (!type || !id || !alignment || (t.sizes.size() != 4 && t.sizes.size() != 5) ||
      t.sizes.size() != t.strides.size() || *std::min_element(t.sizes.begin(), t.sizes.end()) < 1)
    return std::nullopt;
  t.number = *type == CUDNN_DATA_HALF       ? Number::kHalf
             : *type == CUDNN_DATA_BFLOAT16 ? Number::kBFloat16
                                            : Number::kFloat;
  t.id = *id;
  t.alignment = *alignment;
  t.is_virtual = data->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL).value_or(false);
  t.is_by_value = data->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE).value_or(false);
  return t;
}

}  // namespace stand_in
