#include "tandem/ops/internal/known.h"

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem::internal {

const Array* known_value(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (!tensor.is_symbolic()) return &tensor.array();
  const Node* node = &tensor.impl()->symbol();
  if (node->kind() != NodeKind::kConst) return nullptr;
  const AttrValue* value = node->attrs().find("value");
  const auto* array = value ? value->get_if<std::shared_ptr<const Array>>() : nullptr;
  return array ? array->get() : nullptr;
}

std::optional<std::vector<std::int64_t>> known_ints(const Tensor& tensor) {
  const Array* value = known_value(tensor);
  if (!value) return std::nullopt;
  if (value->dtype() == DType::kInt32) {
    const auto ints = value->values<std::int32_t>();
    return std::vector<std::int64_t>(ints.begin(), ints.end());
  }
  if (value->dtype() == DType::kInt64) {
    const auto ints = value->values<std::int64_t>();
    return std::vector<std::int64_t>(ints.begin(), ints.end());
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> known_dims(const Tensor& tensor) {
  if (!tensor.is_symbolic()) return tensor.shape().to_vector();
  const PartialShape shape = tensor.partial_shape();
  if (!shape.is_fully_known()) return std::nullopt;
  return shape.dims();
}

Tensor int_vector(const std::vector<std::int64_t>& values, DType dtype) {
  if (dtype == DType::kInt64) return Tensor(Array::vector(values));
  return Tensor(Array::vector(std::vector<std::int32_t>(values.begin(), values.end())));
}

Tensor index_scalar(std::int64_t value) {
  const auto narrow = static_cast<std::int32_t>(value);
  return narrow == value ? Tensor(Array::scalar(narrow)) : Tensor(Array::scalar(value));
}

namespace {

template <class T>
Tensor scalar_of(std::int64_t value) {
  return Tensor(Array::scalar<T>(static_cast<T>(value)));
}

}  // namespace

Tensor int_scalar(std::int64_t value, DType dtype) {
  const auto f = static_cast<float>(value);
  switch (dtype) {
    case DType::kFloat: return scalar_of<float>(value);
    case DType::kDouble: return scalar_of<double>(value);
    case DType::kHalf: return Tensor(Array::scalar(Half(f)));
    case DType::kBFloat16: return Tensor(Array::scalar(BFloat16(f)));
    case DType::kComplex64: return Tensor(Array::scalar(std::complex<float>(f)));
    case DType::kComplex128:
      return Tensor(Array::scalar(std::complex<double>(static_cast<double>(value))));
    case DType::kInt8: return scalar_of<std::int8_t>(value);
    case DType::kInt16: return scalar_of<std::int16_t>(value);
    case DType::kInt32: return scalar_of<std::int32_t>(value);
    case DType::kInt64: return scalar_of<std::int64_t>(value);
    case DType::kUint8: return scalar_of<std::uint8_t>(value);
    case DType::kUint16: return scalar_of<std::uint16_t>(value);
    case DType::kUint32: return scalar_of<std::uint32_t>(value);
    case DType::kUint64: return scalar_of<std::uint64_t>(value);
    case DType::kBool: return Tensor(value != 0);
    case DType::kString: return Tensor("");
    default: throw InvalidArgumentError(cat("There is no number of dtype ", dtype, "."));
  }
}

Tensor op1(std::string_view name, std::initializer_list<Tensor> inputs, const AttrMap& attrs) {
  return raw_op(name, inputs, attrs).at(0);
}

}  // namespace tandem::internal
