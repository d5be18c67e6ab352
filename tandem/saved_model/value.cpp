#include "tandem/saved_model/value.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem::saved_model {
namespace {

const char* kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNone: return "None";
    case Value::Kind::kBool: return "a bool";
    case Value::Kind::kInt: return "an integer";
    case Value::Kind::kFloat: return "a number";
    case Value::Kind::kString: return "a string";
    case Value::Kind::kDType: return "a dtype";
    case Value::Kind::kShape: return "a shape";
    case Value::Kind::kTensor: return "a tensor";
    case Value::Kind::kSpec: return "the spec of a tensor";
    case Value::Kind::kComposite: return "a composite tensor";
    case Value::Kind::kCompositeSpec: return "the spec of a composite tensor";
    case Value::Kind::kList: return "a list";
    case Value::Kind::kTuple: return "a tuple";
    case Value::Kind::kDict: return "a dictionary";
    case Value::Kind::kNamedTuple: return "a named tuple";
  }
  return "a value";
}

}  // namespace

std::string TensorSpec::to_string() const {
  return cat(name, name.empty() ? "" : ": ", dtype, shape);
}

Value::Value(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}
Value::Value(bool value) : kind_(Kind::kBool), bool_(value) {}
Value::Value(Integer value) : kind_(Kind::kInt), int_(value.value) {}
Value::Value(double value) : kind_(Kind::kFloat), float_(value) {}
Value::Value(std::string value) : kind_(Kind::kString), text_(std::move(value)) {}
Value::Value(DType value) : kind_(Kind::kDType) { spec_.dtype = value; }
Value::Value(TensorSpec spec) : kind_(Kind::kSpec), spec_(std::move(spec)) {}
Value::Value(std::map<std::string, Value> items) : kind_(Kind::kDict) {
  for (auto& [name, item] : items) {
    keys_.push_back(name);
    items_.push_back(std::move(item));
  }
}

Value Value::shape(PartialShape shape) {
  Value value;
  value.kind_ = Kind::kShape;
  value.spec_.shape = std::move(shape);
  return value;
}
Value Value::list(std::vector<Value> items) {
  Value value;
  value.kind_ = Kind::kList;
  value.items_ = std::move(items);
  return value;
}
Value Value::tuple(std::vector<Value> items) {
  Value value = list(std::move(items));
  value.kind_ = Kind::kTuple;
  return value;
}
Value Value::dict(std::map<std::string, Value> items) { return Value(std::move(items)); }
Value Value::named_tuple(std::string type, std::vector<std::pair<std::string, Value>> items) {
  Value value;
  value.kind_ = Kind::kNamedTuple;
  value.text_ = std::move(type);
  for (auto& [name, item] : items) {
    value.keys_.push_back(std::move(name));
    value.items_.push_back(std::move(item));
  }
  return value;
}
Value Value::composite(std::string type, std::vector<Value> components) {
  Value value = list(std::move(components));
  value.kind_ = Kind::kComposite;
  value.text_ = std::move(type);
  return value;
}
Value Value::composite_spec(std::string type, std::vector<Value> components, std::string encoded) {
  Value value = composite(std::move(type), std::move(components));
  value.kind_ = Kind::kCompositeSpec;
  value.encoded_ = std::move(encoded);
  return value;
}
Value Value::ragged(Tensor flat_values, std::vector<Tensor> nested_row_splits) {
  std::vector<Value> components{std::move(flat_values)};
  for (Tensor& splits : nested_row_splits) components.emplace_back(std::move(splits));
  return composite("RaggedTensorSpec", std::move(components));
}
Value Value::sparse(const sparse::SparseTensor& tensor) {
  return composite("SparseTensorSpec", {tensor.indices, tensor.values, tensor.dense_shape});
}

void Value::expect(Kind kind, const char* what) const {
  if (kind_ != kind)
    throw InvalidArgumentError(
        cat("Expected ", what, ", got ", kind_name(kind_), ": ", to_string()));
}

const Tensor& Value::tensor() const {
  expect(Kind::kTensor, "a tensor");
  return tensor_;
}
bool Value::as_bool() const {
  expect(Kind::kBool, "a bool");
  return bool_;
}
std::int64_t Value::as_int() const {
  expect(Kind::kInt, "an integer");
  return int_;
}
double Value::as_float() const {
  expect(Kind::kFloat, "a number");
  return float_;
}
const std::string& Value::as_string() const {
  expect(Kind::kString, "a string");
  return text_;
}
DType Value::as_dtype() const {
  expect(Kind::kDType, "a dtype");
  return spec_.dtype;
}
const PartialShape& Value::as_shape() const {
  expect(Kind::kShape, "a shape");
  return spec_.shape;
}
const TensorSpec& Value::spec() const {
  expect(Kind::kSpec, "the spec of a tensor");
  return spec_;
}
sparse::SparseTensor Value::sparse() const {
  if (kind_ != Kind::kComposite || items_.size() != 3 || text_ != "SparseTensorSpec")
    throw InvalidArgumentError(cat("Expected a SparseTensor, got ", to_string()));
  return {items_[0].tensor(), items_[1].tensor(), items_[2].tensor()};
}

const Value& Value::operator[](std::size_t i) const {
  if (i < items_.size()) return items_[i];
  throw NotFoundError(cat("There is no element ", i, " in ", kind_name(kind_), " of ",
                          items_.size(), ": ", to_string()));
}
const Value& Value::operator[](const std::string& name) const {
  const auto found = std::find(keys_.begin(), keys_.end(), name);
  if (found != keys_.end()) return items_[static_cast<std::size_t>(found - keys_.begin())];
  throw NotFoundError(cat("There is no '", name, "' in ", kind_name(kind_), ": ", to_string()));
}

std::vector<Tensor> Value::tensors() const {
  if (kind_ == Kind::kTensor) return {tensor_};
  std::vector<Tensor> all;
  for (const Value& item : items_) {
    for (Tensor& tensor : item.tensors()) all.push_back(std::move(tensor));
  }
  return all;
}
std::vector<TensorSpec> Value::specs() const {
  if (kind_ == Kind::kSpec) return {spec_};
  std::vector<TensorSpec> all;
  for (const Value& item : items_) {
    for (TensorSpec& spec : item.specs()) all.push_back(std::move(spec));
  }
  return all;
}

std::string Value::joined(const char* open, const char* close) const {
  std::string text = open;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) text += ", ";
    if (kind_ == Kind::kDict) text += cat("'", keys_[i], "': ");
    if (kind_ == Kind::kNamedTuple) text += cat(keys_[i], "=");
    text += items_[i].to_string();
  }
  return text + close;
}

std::string Value::to_string() const {
  switch (kind_) {
    case Kind::kNone: return "None";
    case Kind::kBool: return bool_ ? "True" : "False";
    case Kind::kInt: return cat(int_);
    case Kind::kFloat: return cat(float_);
    case Kind::kString: return cat("'", text_, "'");
    case Kind::kDType: return cat(spec_.dtype);
    case Kind::kShape: return cat(spec_.shape);
    case Kind::kTensor:
      return tensor_.defined() ? cat(tensor_.dtype(), tensor_.partial_shape()) : "undefined";
    case Kind::kSpec: return spec_.to_string();
    case Kind::kComposite:
    case Kind::kCompositeSpec: return joined(cat(text_, "(").c_str(), ")");
    case Kind::kList: return joined("[", "]");
    case Kind::kTuple: return joined("(", items_.size() == 1 ? ",)" : ")");
    case Kind::kDict: return joined("{", "}");
    case Kind::kNamedTuple: return joined(cat(text_, "(").c_str(), ")");
  }
  return "";
}

}  // namespace tandem::saved_model
