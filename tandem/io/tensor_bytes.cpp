#include "tandem/io/tensor_bytes.h"

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {

// A few bytes may stand for a tensor of equal elements; so large a one is refused.
constexpr std::size_t kMaxFilled = std::size_t{1} << 30;

Array read_tensor_bytes(std::string_view bytes) {
  proto::TensorProto message;
  try {
    proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(
        cat("These ", bytes.size(), " bytes are no TensorProto: ", error.what(), "."));
  }
  DecodedTensor decoded = decode_tensor(message, kMaxFilled);
  if (decoded.shape) {
    throw InvalidArgumentError(cat("A tensor of shape ", *decoded.shape,
                                   " is given by one element, and is larger than ", kMaxFilled,
                                   " bytes."));
  }
  return decoded.value;
}

}  // namespace tandem::io
