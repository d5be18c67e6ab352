#pragma once

#include <string>

#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Calls and waits for the answer, for clients; throws what the status says.
Bytes blocking_call(Channel& channel, const char* method, Bytes request,
                    const CallOptions& options = {});

/// "HOST:PORT" of "grpc://HOST:PORT".
std::string address_of_target(const std::string& target);

}  // namespace tandem::distribute
