#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/distribute/internal/parameters/parameter_state.h"

namespace tandem::distribute {

/// Answers a pull: with the variables that are asked for and have changed, and with rows, from the
/// request's position on. What is larger than a message may be is cut. Values share the state's
/// memory; parts do not, so that an update behind them need not copy the whole variable. Throws
/// NotFoundError for an unknown variable.
Bytes pull_reply(const ParameterState& state, const std::string& term,
                 const proto::PullRequest& request, const std::shared_ptr<const void>& owner,
                 std::size_t max_bytes);

}  // namespace tandem::distribute
