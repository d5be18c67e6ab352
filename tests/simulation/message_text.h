#pragma once

#include <string>
#include <string_view>

#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::simulation {

/// What a message between chief, workers and parameter servers says, in a few words for a trace.
std::string request_text(std::string_view method, const std::string& request);
std::string reply_text(std::string_view method, const distribute::Status& status,
                       const distribute::Bytes& reply);

/// "/job:ps/replica:0/task:1" as "ps1"; other nodes by their names.
std::string short_name(const std::string& node);

}  // namespace tandem::simulation
