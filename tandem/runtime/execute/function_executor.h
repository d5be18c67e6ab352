#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/plan_budget.h"

namespace tandem {

class Executable;
struct PlacementChoice;
class Runtime;

/// Runs functions: optimises each once, makes plans for the shapes of arguments (PlanCache), and
/// executes them on the calling thread. Thread-safe; any number of threads may run one function at
/// a time.
class TANDEM_EXPORT FunctionExecutor final : public FunctionRunner {
 public:
  std::vector<Array> run(const Function& function, std::vector<Array> args,
                         KernelContext& caller) override;
  /// Throws what a call with these arguments would, if they are too few or not of the function's
  /// dtypes and shapes.
  static void check(const Function& function, const std::vector<Array>& args);
  /// The plan that such a call would use.
  static std::shared_ptr<Executable> prepare(const Function& function, std::span<const Array> args,
                                             const Device& device);

  /// By what the next call places the function: what it was first placed by in this runtime, else
  /// what is in force.
  static PlacementChoice placement_choice(const Function& function, const Runtime& runtime);
  /// The next call places the function, and what it calls, again.
  static void reset_placement(const Function& function);

  /// The plans of one function, and of all.
  static PlanStats plan_stats(const Function& function, const Runtime& runtime);
  PlanBudget& plan_budget() { return plan_budget_; }

 private:
  // While a profiler listens, or where there are several devices.
  static std::vector<Array> run_watched(const Function& function, std::vector<Array> args,
                                        KernelContext& caller);

  PlanBudget plan_budget_;
};

}  // namespace tandem
