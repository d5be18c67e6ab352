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
  void run_async(const Function& function, std::vector<Array> args, KernelContext& caller,
                 Done done) override;
  void copy_to_host_async(Array value, CopyDone done) override;

  /// A step of the calling thread that runs `function`: what every call that is not made by a
  /// kernel of a step goes through. Throws the first failure.
  static std::vector<Array> call(const Function& function, std::vector<Array> args,
                                 const Device& device);
  /// As `call`, for callers that have lists of their own: see Executable::run_between.
  static void call_between(const Function& function, std::span<Array> args,
                           std::span<const Array> places, std::span<Array> results,
                           const Device& device);
  /// Runs `function` as a part of a step that the caller has begun (StepScope), without a depth of
  /// calls; throws the first failure.
  static std::vector<Array> run_in(const StepContext& within, const Function& function,
                                   std::vector<Array> args, const Device& device);

  /// True if running it may wait for something other than computing threads: its nodes, or those of
  /// functions that it calls, have kernels of the asynchronous form alone, or run on devices.
  static bool may_wait(const Function& function, const Runtime& runtime);
  static bool calls_may_wait(const Node& node, const Runtime& runtime);

  /// Throws what a call with these arguments would, if they are too few or not of the function's
  /// dtypes and shapes.
  static void check(const Function& function, const std::vector<Array>& args);
  /// The plan that such a call would use.
  /// `within`, if given, is the step, whose session may keep what stateful nodes keep.
  static std::shared_ptr<Executable> prepare(const Function& function, std::span<const Array> args,
                                             const Device& device,
                                             const StepContext* within = nullptr);

  /// By what the next call places the function: what it was first placed by in this runtime, else
  /// what is in force.
  static PlacementChoice placement_choice(const Function& function, const Runtime& runtime);
  /// The next call places the function, and what it calls, again.
  static void reset_placement(const Function& function);

  /// The plans of one function, and of all.
  static PlanStats plan_stats(const Function& function, const Runtime& runtime);
  PlanBudget& plan_budget() { return plan_budget_; }

 private:
  template <class Body>
  static void as_step(const Body& body);

  PlanBudget plan_budget_;
};

}  // namespace tandem
