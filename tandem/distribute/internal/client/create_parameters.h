#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "tandem/distribute/internal/parameters/state_parts.h"

namespace tandem::distribute {

/// Puts variables on a server, unless it has them already; large ones in parts. `request` has the
/// settings, and `state` are the names of variables that are state. `call` calls the server and
/// waits for its answer; what it throws ends this, and so does what the server answers.
proto::CreateParametersResponse create_parameters(
    const std::function<Bytes(const char* method, Bytes request)>& call,
    const proto::CreateParametersRequest& request, const Parameters& variables,
    const std::set<std::string>& state, std::size_t max_part_bytes = kMaxPartBytes);

}  // namespace tandem::distribute
