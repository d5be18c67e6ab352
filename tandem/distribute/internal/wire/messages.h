#pragma once

#include <string>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/rpc/bytes.h"
#include "tandem/distribute/proto/messages.h"
#include "tandem/io/internal/wire.h"

namespace tandem::distribute {

/// Reads a message; what it has of `bytes` fields are views into `bytes`. Throws
/// InvalidArgumentError.
template <class M>
void read_message(Bytes& bytes, M& message) {
  try {
    io::proto::WireReader(bytes.flat()).read(message);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(cat("The message cannot be parsed: ", error.what(), "."));
  }
}
template <class M>
void read_part(std::string_view bytes, M& message) {
  try {
    io::proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(cat("The message cannot be parsed: ", error.what(), "."));
  }
}

template <class M>
Bytes write_message(const M& message) {
  return Bytes(io::proto::WireWriter::write(message));
}

}  // namespace tandem::distribute
