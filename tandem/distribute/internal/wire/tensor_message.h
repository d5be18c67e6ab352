#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/array.h"
#include "tandem/distribute/internal/rpc/bytes.h"

namespace tandem::distribute {

/// Whether the dtype is one of numbers whose every bit pattern is a value, in memory as on the
/// wire.
bool is_plain_number(DType dtype);

/// The value of a serialized TensorProto. Large contents are not copied where their alignment
/// allows it: the array then keeps `owner`, which keeps `bytes`. Throws InvalidArgumentError, and
/// allocates no more than a small multiple of what the message holds.
Array read_tensor(std::string_view bytes, const std::shared_ptr<const void>& owner);

/// A TensorProto that holds the value in tensor_content, as TensorFlow's servers write it, strings
/// included. The content is the array's own memory.
Bytes write_tensor(const Array& value);

/// The same within another message, as its field of that number.
void append_tensor_field(Bytes& message, int field, const Array& value);
/// Any bytes, such as another message, as a field.
void append_bytes_field(Bytes& message, int field, Bytes value);
/// A NamedTensorProto {name = 1, tensor = 2} as a field.
void append_named_tensor_field(Bytes& message, int field, std::string_view name,
                               const Array& value);

}  // namespace tandem::distribute
