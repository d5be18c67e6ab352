#include "tandem/runtime/place_again.h"

#include "tandem/core/error.h"
#include "tandem/runtime/internal/function_executor.h"

namespace tandem::config {

void place_again(const ConcreteFunction& function) {
  if (!function.function()) throw InvalidArgumentError("An empty function has no place.");
  FunctionExecutor::place_again(*function.function());
}

}  // namespace tandem::config
