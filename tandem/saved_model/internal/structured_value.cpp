#include "tandem/saved_model/internal/structured_value.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;
using Case = proto::StructuredValue::Case;

// A composite announces by a number what it is made of.
constexpr int kMaxComponents = 1024;

DType decode_dtype(int number) {
  const auto dtype = io::dtype_of_number(number);
  if (!dtype)
    throw UnimplementedError(cat("A signature has dtype ", io::dtype_number_name(number), "."));
  return *dtype;
}

Value spec_value(DType dtype, PartialShape shape) {
  return TensorSpec{.dtype = dtype, .shape = std::move(shape)};
}

PartialShape unknown_vector() { return PartialShape({-1}); }

// Flat values, and the row splits of each ragged axis.
std::vector<Value> ragged_components(const Value& state) {
  const PartialShape& shape = state[0].as_shape();
  const DType dtype = state[1].as_dtype();
  const std::int64_t rank = state[2].as_int();
  const DType splits = state[3].as_dtype();
  if (rank < 0 || rank > kMaxComponents || (shape.has_rank() && rank > shape.rank()))
    throw InvalidArgumentError(
        cat("A RaggedTensorSpec of shape ", shape, " has ragged rank ", rank, "."));
  PartialShape values = PartialShape::unknown();
  if (shape.has_rank()) {
    std::vector<std::int64_t> dims(shape.dims().begin() + rank, shape.dims().end());
    if (!dims.empty() && rank > 0) dims[0] = -1;
    values = PartialShape(std::move(dims));
  }
  std::vector<Value> components{spec_value(dtype, std::move(values))};
  for (std::int64_t i = 0; i < rank; ++i)
    components.push_back(spec_value(splits, unknown_vector()));
  return components;
}

std::vector<Value> sparse_components(const Value& state) {
  const PartialShape& shape = state[0].as_shape();
  const std::int64_t rank = shape.has_rank() ? shape.rank() : -1;
  return {spec_value(DType::kInt64, PartialShape({-1, rank})),
          spec_value(state[1].as_dtype(), unknown_vector()),
          spec_value(DType::kInt64, PartialShape({rank}))};
}

Value decode_type_spec(const proto::TypeSpecProto& type) {
  const Value state = decode(*type.type_state);
  std::vector<Value> components;
  std::string name = type.type_spec_class_name;
  if (type.type_spec_class == proto::RAGGED_TENSOR_SPEC) {
    components = ragged_components(state);
    name = "RaggedTensorSpec";
  } else if (type.type_spec_class == proto::SPARSE_TENSOR_SPEC) {
    components = sparse_components(state);
    name = "SparseTensorSpec";
  } else {
    if (type.num_flat_components < 0 || type.num_flat_components > kMaxComponents) {
      throw InvalidArgumentError(
          cat("A ", name, " has ", type.num_flat_components, " components."));
    }
    for (int i = 0; i < type.num_flat_components; ++i)
      components.push_back(spec_value(DType::kInvalid, PartialShape::unknown()));
  }
  return Value::composite_spec(std::move(name), std::move(components),
                               proto::WireWriter::write(type));
}

proto::StructuredValue of_case(Case which) {
  proto::StructuredValue out;
  out.which_kind = which;
  return out;
}

}  // namespace

Value decode(const proto::StructuredValue& in) {
  const auto all = [](const std::vector<proto::StructuredValue>& values) {
    std::vector<Value> items;
    for (const auto& value : values) items.push_back(decode(value));
    return items;
  };
  switch (in.which_kind) {
    case Case::kNone:
    case Case::kNoneValue: return {};
    case Case::kFloat64Value: return in.float64_value;
    case Case::kInt64Value: return static_cast<std::int64_t>(in.int64_value);
    case Case::kStringValue: return in.string_value;
    case Case::kBoolValue: return in.bool_value;
    case Case::kTensorShapeValue: return Value::shape(io::decode_shape(*in.tensor_shape_value));
    case Case::kTensorDtypeValue: return decode_dtype(in.tensor_dtype_value);
    case Case::kTensorSpecValue:
      return TensorSpec{.dtype = decode_dtype(in.tensor_spec_value->dtype),
                        .shape = io::decode_shape(*in.tensor_spec_value->shape),
                        .name = in.tensor_spec_value->name};
    case Case::kBoundedTensorSpecValue:
      return TensorSpec{.dtype = decode_dtype(in.bounded_tensor_spec_value->dtype),
                        .shape = io::decode_shape(*in.bounded_tensor_spec_value->shape),
                        .name = in.bounded_tensor_spec_value->name};
    case Case::kTypeSpecValue: return decode_type_spec(*in.type_spec_value);
    case Case::kListValue: return Value::list(all(in.list_value->values));
    case Case::kTupleValue: return Value::tuple(all(in.tuple_value->values));
    case Case::kDictValue: {
      std::map<std::string, Value> items;
      for (const auto& [name, value] : in.dict_value->entries) items.emplace(name, decode(value));
      return Value::dict(std::move(items));
    }
    case Case::kNamedTupleValue: {
      std::vector<std::pair<std::string, Value>> items;
      for (const auto& pair : in.named_tuple_value->values)
        items.emplace_back(pair.key, decode(*pair.value));
      return Value::named_tuple(in.named_tuple_value->name, std::move(items));
    }
    case Case::kTensorValue:
    case Case::kNumpyValue: {
      const proto::TensorProto& tensor =
          in.which_kind == Case::kTensorValue ? *in.tensor_value : *in.numpy_value;
      constexpr std::size_t kMaxFilled = std::size_t{1} << 20;
      return Tensor(io::decode_tensor(tensor, kMaxFilled).value);
    }
  }
  throw UnimplementedError("A signature holds a value of an unknown kind.");
}

proto::StructuredValue encode(const Value& value) {
  const auto put_all = [&](auto& list) {
    for (const Value& item : value.items()) list.values.push_back(encode(item));
  };
  switch (value.kind()) {
    case Value::Kind::kNone: {
      auto out = of_case(Case::kNoneValue);
      out.none_value.make();
      return out;
    }
    case Value::Kind::kBool: {
      auto out = of_case(Case::kBoolValue);
      out.bool_value = value.as_bool();
      return out;
    }
    case Value::Kind::kInt: {
      auto out = of_case(Case::kInt64Value);
      out.int64_value = proto::Sint64{value.as_int()};
      return out;
    }
    case Value::Kind::kFloat: {
      auto out = of_case(Case::kFloat64Value);
      out.float64_value = value.as_float();
      return out;
    }
    case Value::Kind::kString: {
      auto out = of_case(Case::kStringValue);
      out.string_value = value.as_string();
      return out;
    }
    case Value::Kind::kDType: {
      auto out = of_case(Case::kTensorDtypeValue);
      out.tensor_dtype_value = static_cast<proto::DataType>(static_cast<int>(value.as_dtype()));
      return out;
    }
    case Value::Kind::kShape: {
      auto out = of_case(Case::kTensorShapeValue);
      io::encode_shape(value.as_shape(), out.tensor_shape_value.make());
      return out;
    }
    case Value::Kind::kSpec: {
      auto out = of_case(Case::kTensorSpecValue);
      proto::TensorSpecProto& spec = out.tensor_spec_value.make();
      spec.name = value.spec().name;
      io::encode_shape(value.spec().shape, spec.shape.make());
      spec.dtype = static_cast<proto::DataType>(static_cast<int>(value.spec().dtype));
      return out;
    }
    case Value::Kind::kCompositeSpec: {
      auto out = of_case(Case::kTypeSpecValue);
      proto::WireReader(value.encoded()).read(out.type_spec_value.make());
      return out;
    }
    case Value::Kind::kList: {
      auto out = of_case(Case::kListValue);
      put_all(out.list_value.make());
      return out;
    }
    case Value::Kind::kTuple: {
      auto out = of_case(Case::kTupleValue);
      put_all(out.tuple_value.make());
      return out;
    }
    case Value::Kind::kDict: {
      auto out = of_case(Case::kDictValue);
      auto& entries = out.dict_value.make().entries;
      for (std::size_t i = 0; i < value.items().size(); ++i)
        entries[value.keys()[i]] = encode(value.items()[i]);
      return out;
    }
    case Value::Kind::kNamedTuple: {
      auto out = of_case(Case::kNamedTupleValue);
      out.named_tuple_value.make().name = value.type();
      for (std::size_t i = 0; i < value.items().size(); ++i) {
        proto::PairValue pair;
        pair.key = value.keys()[i];
        pair.value.make() = encode(value.items()[i]);
        out.named_tuple_value.make().values.push_back(std::move(pair));
      }
      return out;
    }
    case Value::Kind::kTensor:
    case Value::Kind::kComposite: break;
  }
  throw InvalidArgumentError(
      cat("A signature holds the value ", value.to_string(), ", where a file has its spec."));
}

namespace {

Value packed(const Value& structure, const std::vector<Tensor>& tensors, std::size_t& next) {
  std::vector<Value> items;
  for (const Value& item : structure.items()) items.push_back(packed(item, tensors, next));
  switch (structure.kind()) {
    case Value::Kind::kSpec: return tensors.at(next++);
    case Value::Kind::kList: return Value::list(std::move(items));
    case Value::Kind::kTuple: return Value::tuple(std::move(items));
    case Value::Kind::kCompositeSpec: return Value::composite(structure.type(), std::move(items));
    case Value::Kind::kDict: {
      std::map<std::string, Value> dict;
      for (std::size_t i = 0; i < items.size(); ++i)
        dict.emplace(structure.keys()[i], std::move(items[i]));
      return Value::dict(std::move(dict));
    }
    case Value::Kind::kNamedTuple: {
      std::vector<std::pair<std::string, Value>> named;
      for (std::size_t i = 0; i < items.size(); ++i)
        named.emplace_back(structure.keys()[i], std::move(items[i]));
      return Value::named_tuple(structure.type(), std::move(named));
    }
    default: return structure;
  }
}

}  // namespace

Value pack(const Value& structure, const std::vector<Tensor>& tensors) {
  if (num_specs(structure) != tensors.size()) {
    throw InvalidArgumentError(
        cat("A function returned ", tensors.size(), " tensors for ", structure.to_string(), "."));
  }
  std::size_t next = 0;
  return packed(structure, tensors, next);
}

std::size_t num_specs(const Value& structure) {
  if (structure.kind() == Value::Kind::kSpec) return 1;
  std::size_t count = 0;
  for (const Value& item : structure.items()) count += num_specs(item);
  return count;
}

}  // namespace tandem::saved_model::internal
