#include "tandem/runtime/reset_placement.h"

#include "tandem/core/error.h"
#include "tandem/runtime/execute/function_executor.h"

namespace tandem::config {

void reset_placement(const ConcreteFunction& function) {
  if (!function.function()) throw InvalidArgumentError("An empty function has no place.");
  FunctionExecutor::reset_placement(*function.function());
}

}  // namespace tandem::config
