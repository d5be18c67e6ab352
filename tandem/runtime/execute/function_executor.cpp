#include "tandem/runtime/execute/function_executor.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan_cache.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace/called_functions.h"

namespace tandem {
namespace {

constexpr int kDeepestCall = 200;

int& call_depth() {
  thread_local int depth = 0;
  return depth;
}

struct DepthGuard {
  explicit DepthGuard(const Function& function) {
    if (++call_depth() > kDeepestCall) {
      --call_depth();
      throw FailedPreconditionError(cat("Function '", function.name(), "' calls itself more than ",
                                        kDeepestCall, " times deep. Does its recursion end?"));
    }
  }
  ~DepthGuard() { --call_depth(); }
};

// The first CPU where nothing says otherwise.
int place_of(const Runtime& runtime, const Array& value) {
  int place = -1;
  if (value.dtype() != DType::kResource) {
    if (const Device* device = device_of(value)) place = runtime.index_of(*device);
  } else if (value.num_elements() != 0 && !value.data<ResourceHandle>()->empty()) {
    place = runtime.index_of(value.data<ResourceHandle>()->info().device);
  }
  return std::max(place, 0);
}

[[gnu::always_inline]] inline std::shared_ptr<PlanCache> plans_of(const Function& function) {
  return function.derived<PlanCache>(Function::kPlans,
                                     [] { return std::make_shared<PlanCache>(); });
}

[[gnu::always_inline]] inline void check_args(const Function& function,
                                              const std::vector<Array>& args) {
  if (args.size() != function.args().size()) {
    throw InvalidArgumentError(cat("Function '", function.name(), "' takes ",
                                   function.args().size(), " arguments but got ", args.size(),
                                   "."));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Node& arg = *function.args()[i];
    const DType dtype = args[i].dtype(), wanted = arg.output_dtype(0);
    if ((dtype != wanted && base_dtype(dtype) != base_dtype(wanted)) ||
        !arg.output_shape(0).is_compatible(args[i].shape())) {
      throw InvalidArgumentError(cat("Function '", function.name(), "': argument ", i, " must be ",
                                     wanted, arg.output_shape(0), " but is ", dtype,
                                     args[i].shape(), "."));
    }
  }
}

}  // namespace

PlanStats FunctionExecutor::plan_stats(const Function& function, const Runtime& runtime) {
  return plans_of(function)->stats(runtime);
}

void FunctionExecutor::check(const Function& function, const std::vector<Array>& args) {
  check_args(function, args);
}

PlacementChoice FunctionExecutor::placement_choice(const Function& function,
                                                   const Runtime& runtime) {
  const std::optional<PlacementChoice> kept = plans_of(function)->choice(runtime);
  return kept ? *kept : PlacementChoice::of(runtime);
}

void FunctionExecutor::reset_placement(const Function& function) {
  plans_of(function)->forget_places();
  for (const Function* called : called_functions(function.body()))
    plans_of(*called)->forget_places();
}

std::vector<Array> FunctionExecutor::run(const Function& function, std::vector<Array> args,
                                         KernelContext& caller) {
  DepthGuard depth(function);
  check_args(function, args);
  Runtime& runtime = Runtime::current();
  if (StepRecorder::on() || runtime.needs_placement())
    return run_watched(function, std::move(args), caller);
  const std::shared_ptr<Executable> plan =
      plans_of(function)->get(runtime, function, args, nullptr);
  const ScopedFlushDenormals flush;
  return plan->run(std::move(args), caller.cancellation());
}

std::vector<Array> FunctionExecutor::run_watched(const Function& function, std::vector<Array> args,
                                                 KernelContext& caller) {
  const FunctionSpan span(function.name());
  RunningCalls& calls = Runtime::current().running_calls();
  const RunningCalls::Scope call(calls);
  calls.closing()->check();
  const std::shared_ptr<Executable> plan = prepare(function, args, caller.device());
  const ScopedFlushDenormals flush;
  const Cancellation* const callers = caller.cancellation();
  if (callers == nullptr) return plan->run(std::move(args), calls.closing().get());
  const std::shared_ptr<const Cancellation> own = thread_context().cancellation;
  // Calls within a call come with what was made for that one.
  if (callers != own.get() || own->joins(calls.closing()))
    return plan->run(std::move(args), callers);
  // What waits in the call, a dequeue say, ends with the runtime as well. The scope keeps it for
  // what outlives the call.
  const std::shared_ptr<const Cancellation> both = calls.closing_or(own);
  const CancellationScope scope(both);
  return plan->run(std::move(args), both.get());
}

std::shared_ptr<Executable> FunctionExecutor::prepare(const Function& function,
                                                      std::span<const Array> args,
                                                      const Device& device) {
  Runtime& runtime = Runtime::current();
  if (!runtime.needs_placement()) return plans_of(function)->get(runtime, function, args, nullptr);
  CallPlaces places;
  for (const Array& a : args) {
    places.args.push_back(place_of(runtime, a));
    if (a.on_host() && !is_computed(a)) places.unmaterialized = true;
  }
  places.default_device = std::max(runtime.index_of(device), 0);
  const auto& devices = runtime.devices();
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d]->lost().empty()) continue;
    places.lost.resize(devices.size());
    places.lost[d] = true;
  }
  return plans_of(function)->get(runtime, function, args, &places);
}

}  // namespace tandem
