#pragma once

#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/graph/kernel_context.h"

namespace tandem {

class Runtime;

/// Runs functions: optimises each once, makes a plan for each set of argument shapes (the latest 32
/// are kept), and executes it on the calling thread. Thread-safe; any number of threads may run one
/// function at a time.
class TANDEM_EXPORT FunctionExecutor final : public FunctionRunner {
 public:
  std::vector<Array> run(const Function& function, std::vector<Array> args,
                         KernelContext& caller) override;
};

}  // namespace tandem
