#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

/// Messages that record files hold, and tensors as bytes. To read many examples into tensors,
/// `parse_example` (tandem/ops/example_ops.h) is far faster.
namespace tandem::io {

/// A feature's values: strings of bytes, floats or integers.
using FeatureValues =
    std::variant<std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;

/// tensorflow.Example: named lists of values.
///
///     td::io::Example example;
///     example.set("label", std::vector<std::int64_t>{3}).set("name", {"three"});
///     writer.write(example.serialize());
struct TANDEM_EXPORT Example {
  std::map<std::string, FeatureValues> features;

  Example& set(std::string key, FeatureValues values) {
    features[std::move(key)] = std::move(values);
    return *this;
  }
  Example& set(std::string key, std::initializer_list<const char*> values) {
    return set(std::move(key), std::vector<std::string>(values.begin(), values.end()));
  }
  /// A tensor's elements: strings, floating-point numbers (as float), integers and bools (as
  /// int64).
  Example& set(std::string key, const Tensor& values);

  /// Serializes deterministically: equal features give equal bytes.
  std::string serialize() const;
  /// Throws DataLossError if the bytes are none. Features without values of any kind are left out.
  static Example parse(std::string_view bytes);
  bool operator==(const Example&) const = default;
};

/// tensorflow.SequenceExample: features of the whole, and lists of features, one a step. Many of
/// them become tensors by `parse_sequence_example` (tandem/ops/sequence_example_ops.h).
struct TANDEM_EXPORT SequenceExample {
  std::map<std::string, FeatureValues> context = {};
  std::map<std::string, std::vector<FeatureValues>> feature_lists = {};

  std::string serialize() const;
  /// Throws DataLossError if the bytes are none.
  static SequenceExample parse(std::string_view bytes);
  bool operator==(const SequenceExample&) const = default;
};

/// A tensor as a serialized TensorProto, a string scalar.
TANDEM_EXPORT Tensor serialize_tensor(Tensor tensor);
/// The tensor that `serialize_tensor` was given; InvalidArgumentError if the bytes hold none of
/// dtype `out_type`.
TANDEM_EXPORT Tensor parse_tensor(Tensor serialized, DType out_type);

}  // namespace tandem::io
