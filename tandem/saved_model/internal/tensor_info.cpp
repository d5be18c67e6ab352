#include "tandem/saved_model/internal/tensor_info.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/saved_model/internal/structured_value.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;
using Case = proto::TensorInfo::Case;

TensorSpec spec_of(const proto::TensorInfo& info) {
  const auto dtype = io::dtype_of_number(info.dtype);
  if (!dtype)
    throw UnimplementedError(cat("It has dtype ", io::dtype_number_name(info.dtype), "."));
  return {.dtype = base_dtype(*dtype), .shape = io::decode_shape(*info.tensor_shape)};
}

}  // namespace

NamedTensors tensors_of(const proto::TensorInfo& info) {
  switch (info.which_encoding) {
    case Case::kName: return {spec_of(info), {info.name}};
    case Case::kCooSparse: {
      const TensorSpec values = spec_of(info);
      const std::int64_t rank = values.shape.has_rank() ? values.shape.rank() : -1;
      return {Value::composite_spec(
                  "SparseTensorSpec",
                  {TensorSpec{.dtype = DType::kInt64, .shape = PartialShape({-1, rank})},
                   TensorSpec{.dtype = values.dtype, .shape = PartialShape({-1})},
                   TensorSpec{.dtype = DType::kInt64, .shape = PartialShape({rank})}},
                  ""),
              {info.coo_sparse->indices_tensor_name, info.coo_sparse->values_tensor_name,
               info.coo_sparse->dense_shape_tensor_name}};
    }
    case Case::kCompositeTensor: {
      proto::StructuredValue type;
      type.which_kind = proto::StructuredValue::Case::kTypeSpecValue;
      type.type_spec_value.make() = *info.composite_tensor->type_spec;
      NamedTensors all{decode(type), {}};
      for (const proto::TensorInfo& component : info.composite_tensor->components) {
        if (component.which_encoding != Case::kName)
          throw InvalidArgumentError("A component of a composite tensor is no tensor.");
        all.tensors.push_back(component.name);
      }
      if (all.tensors.size() != num_specs(all.spec))
        throw InvalidArgumentError(cat("A composite tensor has ", all.tensors.size(),
                                       " components, not ", num_specs(all.spec), "."));
      return all;
    }
    case Case::kNone: break;
  }
  throw InvalidArgumentError("It names no tensor.");
}

}  // namespace tandem::saved_model::internal
