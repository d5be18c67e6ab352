#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/distribute/internal/eager/eager_call.h"
#include "tandem/distribute/internal/eager/task_function.h"

namespace tandem::distribute {

/// Calls a function whose nodes or arguments are in several tasks: gives each other task its part,
/// at the first call, and runs all parts as one step. `device`: of nodes that ask for none.
void run_over_tasks(const std::shared_ptr<EagerContext>& context,
                    const std::shared_ptr<const EagerProgram>& program, const std::string& device,
                    std::vector<TaskInput> inputs, OperationDone done);

}  // namespace tandem::distribute
