#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tandem/core/array.h"
#include "tandem/distribute/internal/client/parameter_client.h"

namespace tandem::distribute {

/// The values that a pull has fetched.
struct PulledParameters {
  std::int64_t version = 0;
  std::string term = {};
  std::map<std::string, Array> values = {};
  std::map<std::string, Array> rows = {};  ///< by the names of the variables
};

/// Pulls variables and rows from a server. `request` is a serialized PullRequest without a
/// position. What one message has no room for comes in several, one after the other, and updates
/// may be applied between them: values have all updates up to `version`, and those of later
/// messages may have more.
void pull_parameters(std::shared_ptr<ParameterClient> client, Bytes request,
                     std::shared_ptr<const Cancellation> cancellation,
                     std::function<void(Status status, PulledParameters pulled)> done);

}  // namespace tandem::distribute
