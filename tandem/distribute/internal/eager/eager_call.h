#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/distribute/internal/eager/eager_context.h"
#include "tandem/distribute/proto/messages.h"

namespace tandem::distribute {

using OperationDone = std::function<void(std::exception_ptr error, std::vector<Array> results)>;

/// Runs one operation of an eager context: an op, a send or receive, or a call of a function.
/// Returns at once where it has to wait; `done` is called once. `owner` keeps what `operation`
/// refers to.
void run_operation(const std::shared_ptr<EagerContext>& context,
                   const proto::EagerOperation& operation, const std::shared_ptr<const void>& owner,
                   OperationDone done);

}  // namespace tandem::distribute
