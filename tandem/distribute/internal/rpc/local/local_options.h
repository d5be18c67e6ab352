#pragma once

#include <cstddef>

namespace tandem::distribute {

/// How tasks of one machine talk.
struct LocalOptions {
  bool enabled = true;  ///< false: always by gRPC
  /// Bytes of shared memory for messages on their way; what finds no room goes through the socket.
  std::size_t memory_limit = std::size_t{1} << 30;

  /// From TANDEM_LOCAL_TRANSPORT and TANDEM_LOCAL_TRANSPORT_MEMORY_MB; by default at most an eighth
  /// of this machine's memory. Throws InvalidArgumentError at what is no such value.
  static LocalOptions from_environment();
};

}  // namespace tandem::distribute
