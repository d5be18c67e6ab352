#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/shape.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::saved_model {

/// What a function takes or returns in a place: a dtype and a shape, of which sizes may be unknown.
struct TensorSpec {
  DType dtype = DType::kInvalid;
  PartialShape shape = {};
  std::string name = {};
  /// "x: float[?,784]"
  TANDEM_EXPORT std::string to_string() const;
};

/// What functions of a SavedModel take and return: a tensor, or a structure of such as Python has
/// them (tuples, lists, dictionaries and nestings of these), with plain values within.
///
///     Value pair = Value::tuple({x, y});
///     Value options({{"image", image}, {"scale", 2.0}});   // a dictionary
///     Tensor y = function(pair, options)["y"];
///
/// Signatures are structures of the same kind, with a TensorSpec in place of each tensor.
class TANDEM_EXPORT Value {
 public:
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kDType,
    kShape,
    kTensor,
    kSpec,           ///< stands for a tensor
    kComposite,      ///< a RaggedTensor, SparseTensor and the like: `items` are its components
    kCompositeSpec,  ///< stands for one
    kList,
    kTuple,
    kDict,
    kNamedTuple,
  };

  /// None
  Value() = default;
  Value(Tensor tensor);
  Value(const Variable& variable) : Value(variable.read_value()) {}
  Value(bool value);
  template <std::integral T>
  Value(T value) : Value(Integer{static_cast<std::int64_t>(value)}) {}
  Value(double value);
  Value(const char* value)
      : Value(tandem::internal::name_argument(value, "the value of an argument")) {}
  Value(std::string value);
  Value(DType value);
  Value(TensorSpec spec);
  Value(std::map<std::string, Value> dict);
  static Value shape(PartialShape value);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(std::map<std::string, Value> items);
  static Value named_tuple(std::string type, std::vector<std::pair<std::string, Value>> items);
  /// A RaggedTensor: all values, and the row splits of each ragged axis, outermost first.
  static Value ragged(Tensor flat_values, std::vector<Tensor> nested_row_splits);
  static Value sparse(const sparse::SparseTensor& tensor);
  /// `type` is the name of TensorFlow's class of specs, "RaggedTensorSpec"; `encoded` its
  /// TypeSpecProto.
  static Value composite(std::string type, std::vector<Value> components);
  static Value composite_spec(std::string type, std::vector<Value> components, std::string encoded);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }
  // Each throws InvalidArgumentError for a value of another kind.
  const Tensor& tensor() const;
  operator Tensor() const { return tensor(); }
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_float() const;
  const std::string& as_string() const;
  DType as_dtype() const;
  const PartialShape& as_shape() const;
  const TensorSpec& spec() const;
  sparse::SparseTensor sparse() const;

  /// An element of a list, tuple or composite by position, of a dictionary or named tuple by name.
  /// Throws NotFoundError for one that is not there.
  const Value& operator[](std::size_t i) const;
  const Value& operator[](int i) const { return (*this)[static_cast<std::size_t>(i)]; }
  const Value& operator[](const std::string& name) const;
  const Value& operator[](const char* name) const { return (*this)[std::string(name)]; }
  /// Elements of a structure, in the order of TensorFlow (dictionaries by key).
  const std::vector<Value>& items() const { return items_; }
  /// The name of each item of a dictionary or named tuple.
  const std::vector<std::string>& keys() const { return keys_; }
  /// The class of a composite or named tuple.
  const std::string& type() const { return text_; }
  /// The TypeSpecProto of a composite's spec.
  const std::string& encoded() const { return encoded_; }

  /// All tensors, in the order of TensorFlow's nest.flatten with composites expanded.
  std::vector<Tensor> tensors() const;
  /// All specs of tensors, in that order.
  std::vector<TensorSpec> specs() const;
  /// "(x: float[?,3], {'training': False})"
  std::string to_string() const;

 private:
  struct Integer {
    std::int64_t value;
  };
  explicit Value(Integer value);
  void expect(Kind kind, const char* what) const;
  std::string joined(const char* open, const char* close) const;

  Kind kind_ = Kind::kNone;
  bool bool_ = false;
  std::int64_t int_ = 0;
  double float_ = 0;
  std::string text_;     // a string, or the class of a composite or named tuple
  std::string encoded_;  // a TypeSpecProto
  Tensor tensor_;
  TensorSpec spec_;  // a dtype and a shape too
  std::vector<std::string> keys_;
  std::vector<Value> items_;
};

}  // namespace tandem::saved_model
