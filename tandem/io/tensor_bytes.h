#pragma once

#include <string>
#include <string_view>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

namespace tandem::io {

/// The value of a serialized tensorflow.TensorProto, in any of its forms. Throws
/// InvalidArgumentError if the bytes are none, contradict themselves, or announce data that they do
/// not hold; UnimplementedError for resources and variants.
TANDEM_EXPORT Array read_tensor_bytes(std::string_view bytes);

}  // namespace tandem::io
