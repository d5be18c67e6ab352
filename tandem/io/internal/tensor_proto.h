#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tandem/core/array.h"
#include "tandem/core/shape.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// A DType if TensorFlow's number is one that Tandem has, references included.
std::optional<DType> dtype_of_number(int number);
/// TensorFlow's name for a number: "DT_FLOAT4_E2M1FN", or "DataType 99".
std::string dtype_number_name(int number);

/// Throws InvalidArgumentError for sizes below -1 or too many dimensions.
PartialShape decode_shape(const proto::TensorShapeProto& proto);
void encode_shape(const PartialShape& shape, proto::TensorShapeProto& proto);

/// A TensorProto's value. One value may stand for a shape of any size, so a value larger than
/// `max_filled` bytes that the message only implies is left as it is: `value` is a scalar then, and
/// `shape` what it is to be repeated to.
struct DecodedTensor {
  Array value;
  std::optional<Shape> shape;
};
/// Throws InvalidArgumentError if the message contradicts itself, or announces data that it does
/// not hold; UnimplementedError for resources and variants.
DecodedTensor decode_tensor(const proto::TensorProto& proto, std::size_t max_filled);

/// Throws UnimplementedError for resources and variants.
void encode_tensor(const Array& value, proto::TensorProto& proto);
/// A tensor of `shape`, of which every element is the one of `value`: written once.
void encode_repeated(const Array& value, const Shape& shape, proto::TensorProto& proto);

}  // namespace tandem::io
