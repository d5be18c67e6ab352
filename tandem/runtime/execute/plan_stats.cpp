#include "tandem/runtime/plan_stats.h"

#include "tandem/core/error.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

PlanBudget& current_budget() {
  Runtime& runtime = Runtime::current();
  return static_cast<FunctionExecutor*>(runtime.services(runtime.default_device()).functions)
      ->plan_budget();
}

}  // namespace

PlanStats plan_stats(const ConcreteFunction& function) {
  if (!function.function()) throw InvalidArgumentError("An empty function has no plans.");
  return FunctionExecutor::plan_stats(*function.function(), Runtime::current());
}

namespace config {

PlanStats get_plan_stats() { return current_budget().stats(); }

void set_plan_memory_limit(std::size_t bytes) { current_budget().set_limit(bytes); }

std::size_t get_plan_memory_limit() { return current_budget().limit(); }

}  // namespace config
}  // namespace tandem
