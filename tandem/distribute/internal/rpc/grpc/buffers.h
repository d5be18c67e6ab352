#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "tandem/distribute/internal/rpc/bytes.h"

namespace tandem::distribute {

/// The memory of a message that came, without a copy.
Bytes bytes_of(const grpc::ByteBuffer& buffer);
/// A message to send; large pieces are not copied.
grpc::ByteBuffer buffer_of(const Bytes& bytes);

}  // namespace tandem::distribute
