#include "tandem/io/internal/graph_def/attr_proto.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/graph_def/tensor_proto.h"

namespace tandem::io {
namespace {

using Proto = tensorflow::AttrValue;

constexpr std::size_t kLargestFilled = 1 << 20;

const char* kind_of(const Proto& proto) {
  switch (proto.value_case()) {
    case Proto::kS: return "string";
    case Proto::kI: return "int";
    case Proto::kF: return "float";
    case Proto::kB: return "bool";
    case Proto::kType: return "type";
    case Proto::kShape: return "shape";
    case Proto::kTensor: return "tensor";
    case Proto::kFunc: return "func";
    case Proto::kPlaceholder: return "placeholder";
    case Proto::VALUE_NOT_SET: return "nothing";
    case Proto::kList: break;
  }
  const Proto::ListValue& list = proto.list();
  if (list.s_size()) return "list(string)";
  if (list.i_size()) return "list(int)";
  if (list.f_size()) return "list(float)";
  if (list.b_size()) return "list(bool)";
  if (list.type_size()) return "list(type)";
  if (list.shape_size()) return "list(shape)";
  if (list.tensor_size()) return "list(tensor)";
  if (list.func_size()) return "list(func)";
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
  if (kind == "list(int)") return std::vector<std::int64_t>(list.i().begin(), list.i().end());
  if (kind == "list(float)") return std::vector<float>(list.f().begin(), list.f().end());
  if (kind == "list(bool)") return std::vector<bool>(list.b().begin(), list.b().end());
  if (kind == "list(string)") return std::vector<std::string>(list.s().begin(), list.s().end());
  if (kind == "list(type)") {
    std::vector<DType> types;
    for (const int number : list.type()) types.push_back(decode_dtype(number));
    return types;
  }
  if (kind == "list(shape)") {
    std::vector<PartialShape> shapes;
    for (const auto& shape : list.shape()) shapes.push_back(decode_shape(shape));
    return shapes;
  }
  if (kind == "list(func)") {
    std::vector<FunctionRef> functions;
    for (const auto& function : list.func()) functions.push_back(find_function(function));
    return functions;
  }
  throw UnimplementedError(cat("attributes of kind ", kind, " are not supported"));
}

AttrValue decode_one(const AttrDef& def, const Proto& proto, const FindFunction& find_function) {
  switch (proto.value_case()) {
    case Proto::kS: return proto.s();
    case Proto::kI: return proto.i();
    case Proto::kF: return proto.f();
    case Proto::kB: return proto.b();
    case Proto::kType: return decode_dtype(proto.type());
    case Proto::kShape: return decode_shape(proto.shape());
    case Proto::kTensor: {
      DecodedTensor tensor = decode_tensor(proto.tensor(), kLargestFilled);
      if (tensor.shape)
        throw InvalidArgumentError(
            cat("a tensor of shape ", *tensor.shape, " holds only one element"));
      return std::move(tensor.value);
    }
    case Proto::kFunc: return find_function(proto.func());
    default: return decode_list(def, proto.list(), find_function);
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
  void operator()(std::int64_t v) { proto.set_i(v); }
  void operator()(float v) { proto.set_f(v); }
  void operator()(bool v) { proto.set_b(v); }
  void operator()(const std::string& v) { proto.set_s(v); }
  void operator()(DType v) { proto.set_type(number(v)); }
  void operator()(const PartialShape& v) { encode_shape(v, *proto.mutable_shape()); }
  void operator()(const std::shared_ptr<const Array>& v) {
    encode_tensor(*v, *proto.mutable_tensor());
  }
  void operator()(const FunctionRef& v) { proto.mutable_func()->set_name(name_of(v)); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    Proto::ListValue& out = *proto.mutable_list();
    for (const auto& v : list) add(out, static_cast<const T&>(v));
  }

 private:
  static tensorflow::DataType number(DType v) {
    return static_cast<tensorflow::DataType>(static_cast<int>(v));
  }
  void add(Proto::ListValue& out, std::int64_t v) { out.add_i(v); }
  void add(Proto::ListValue& out, float v) { out.add_f(v); }
  void add(Proto::ListValue& out, bool v) { out.add_b(v); }
  void add(Proto::ListValue& out, const std::string& v) { out.add_s(v); }
  void add(Proto::ListValue& out, DType v) { out.add_type(number(v)); }
  void add(Proto::ListValue& out, const PartialShape& v) { encode_shape(v, *out.add_shape()); }
  void add(Proto::ListValue& out, const FunctionRef& v) { out.add_func()->set_name(name_of(v)); }
};

}  // namespace

void encode_attr(const AttrValue& value, const NameFunction& name_of, Proto& proto) {
  std::visit(Encoder{name_of, proto}, value.storage());
}

}  // namespace tandem::io
