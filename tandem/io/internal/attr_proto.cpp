#include "tandem/io/internal/attr_proto.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"

namespace tandem::io {
namespace {

using Proto = proto::AttrValue;
using Case = Proto::Case;

constexpr std::size_t kLargestFilled = 1 << 20;

const char* kind_of(const Proto& proto) {
  switch (proto.which_value) {
    case Case::kS: return "string";
    case Case::kI: return "int";
    case Case::kF: return "float";
    case Case::kB: return "bool";
    case Case::kType: return "type";
    case Case::kShape: return "shape";
    case Case::kTensor: return "tensor";
    case Case::kFunc: return "func";
    case Case::kPlaceholder: return "placeholder";
    case Case::kNone: return "nothing";
    case Case::kList: break;
  }
  const Proto::ListValue& list = *proto.list;
  if (!list.s.empty()) return "list(string)";
  if (!list.i.empty()) return "list(int)";
  if (!list.f.empty()) return "list(float)";
  if (!list.b.empty()) return "list(bool)";
  if (!list.type.empty()) return "list(type)";
  if (!list.shape.empty()) return "list(shape)";
  if (!list.tensor.empty()) return "list(tensor)";
  if (!list.func.empty()) return "list(func)";
  return "list";
}

DType decode_dtype(int number) {
  const std::optional<DType> dtype = dtype_of_number(number);
  if (dtype) return *dtype;
  // 33 is TensorFlow's newest number.
  const int base = number > 100 ? number - 100 : number;
  if (base > 0 && base <= 33)
    throw UnimplementedError(cat("there are no values of dtype ", dtype_number_name(number)));
  throw InvalidArgumentError(cat("there is no dtype of number ", number));
}

AttrValue decode_list(const AttrDef& def, const Proto::ListValue& list,
                      const FindFunction& find_function) {
  const std::string& kind = def.kind;
  if (kind == "list(int)") return list.i;
  if (kind == "list(float)") return list.f;
  if (kind == "list(bool)") return list.b;
  if (kind == "list(string)") return list.s;
  if (kind == "list(type)") {
    std::vector<DType> types;
    for (const int number : list.type) types.push_back(decode_dtype(number));
    return types;
  }
  if (kind == "list(shape)") {
    std::vector<PartialShape> shapes;
    for (const auto& shape : list.shape) shapes.push_back(decode_shape(shape));
    return shapes;
  }
  if (kind == "list(func)") {
    std::vector<FunctionRef> functions;
    for (const auto& function : list.func) functions.push_back(find_function(function));
    return functions;
  }
  throw UnimplementedError(cat("attributes of kind ", kind, " are not supported"));
}

AttrValue decode_one(const AttrDef& def, const Proto& proto, const FindFunction& find_function) {
  switch (proto.which_value) {
    case Case::kS: return proto.s;
    case Case::kI: return proto.i;
    case Case::kF: return proto.f;
    case Case::kB: return proto.b;
    case Case::kType: return decode_dtype(proto.type);
    case Case::kShape: return decode_shape(*proto.shape);
    case Case::kTensor: {
      DecodedTensor tensor = decode_tensor(*proto.tensor, kLargestFilled);
      if (tensor.shape)
        throw InvalidArgumentError(
            cat("a tensor of shape ", *tensor.shape, " holds only one element"));
      return std::move(tensor.value);
    }
    case Case::kFunc: return find_function(*proto.func);
    default: return decode_list(def, *proto.list, find_function);
  }
}

void check_supported(const AttrDef& def, DType dtype) {
  if (def.allowed_types.empty() || def.allowed_types.contains(dtype)) return;
  throw UnimplementedError(cat("dtype ", dtype, " is not supported"));
}

}  // namespace

AttrValue decode_attr(const AttrDef& def, const Proto& proto, const FindFunction& find_function) {
  const std::string kind = kind_of(proto);
  const bool empty_list = kind == "list" && def.kind.starts_with("list(");
  if (kind != def.kind && !empty_list)
    throw InvalidArgumentError(cat("must be of kind ", def.kind, " but is ", kind));
  AttrValue value = decode_one(def, proto, find_function);
  if (const auto* dtype = value.get_if<DType>()) check_supported(def, *dtype);
  if (const auto* list = value.get_if<std::vector<DType>>()) {
    for (const DType dtype : *list) check_supported(def, dtype);
  }
  return value;
}

namespace {

struct Encoder {
  const NameFunction& name_of;
  Proto& proto;

  void operator()(std::monostate) {}
  void operator()(std::int64_t v) { proto.i = v, proto.which_value = Case::kI; }
  void operator()(float v) { proto.f = v, proto.which_value = Case::kF; }
  void operator()(bool v) { proto.b = v, proto.which_value = Case::kB; }
  void operator()(const std::string& v) { proto.s = v, proto.which_value = Case::kS; }
  void operator()(DType v) { proto.type = number(v), proto.which_value = Case::kType; }
  void operator()(const PartialShape& v) {
    encode_shape(v, proto.shape.make());
    proto.which_value = Case::kShape;
  }
  void operator()(const std::shared_ptr<const Array>& v) {
    encode_tensor(*v, proto.tensor.make());
    proto.which_value = Case::kTensor;
  }
  void operator()(const FunctionRef& v) {
    proto.func.make().name = name_of(v);
    proto.which_value = Case::kFunc;
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    Proto::ListValue& out = proto.list.make();
    proto.which_value = Case::kList;
    for (const auto& v : list) add(out, static_cast<const T&>(v));
  }

 private:
  static proto::DataType number(DType v) {
    return static_cast<proto::DataType>(static_cast<int>(v));
  }
  void add(Proto::ListValue& out, std::int64_t v) { out.i.push_back(v); }
  void add(Proto::ListValue& out, float v) { out.f.push_back(v); }
  void add(Proto::ListValue& out, bool v) { out.b.push_back(v); }
  void add(Proto::ListValue& out, const std::string& v) { out.s.push_back(v); }
  void add(Proto::ListValue& out, DType v) { out.type.push_back(number(v)); }
  void add(Proto::ListValue& out, const PartialShape& v) {
    encode_shape(v, out.shape.emplace_back());
  }
  void add(Proto::ListValue& out, const FunctionRef& v) {
    out.func.emplace_back().name = name_of(v);
  }
};

}  // namespace

void encode_attr(const AttrValue& value, const NameFunction& name_of, Proto& proto) {
  std::visit(Encoder{name_of, proto}, value.storage());
}

}  // namespace tandem::io
