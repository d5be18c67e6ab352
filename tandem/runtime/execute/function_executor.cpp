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
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan_cache.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/execute/step_scope.h"
#include "tandem/runtime/execute/transfers.h"
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

[[noreturn]] void throw_too_deep(const Function& function) {
  throw FailedPreconditionError(cat("Function '", function.name(), "' calls itself more than ",
                                    kDeepestCall, " times deep. Does its recursion end?"));
}

struct DepthGuard {
  explicit DepthGuard(const Function& function) {
    if (++depth > kDeepestCall) {
      --depth;
      throw_too_deep(function);
    }
  }
  ~DepthGuard() { --depth; }

  int& depth = call_depth();
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

namespace {

// For a call that is no part of a step yet: an eager one of an op that calls functions.
bool begins_step(const KernelContext& caller) {
  return caller.step() == nullptr || caller.step()->id == 0;
}

// What stateful nodes of a called function keep, where the step belongs to a session.
std::shared_ptr<NodeStates> session_part(const Function& function, const StepContext& within) {
  if (!within.session || within.depth == 0) return nullptr;
  return function.stateful() ? within.session->of_function(&function) : nullptr;
}

}  // namespace

std::vector<Array> FunctionExecutor::run(const Function& function, std::vector<Array> args,
                                         KernelContext& caller) {
  if (begins_step(caller)) return call(function, std::move(args), caller.device());
  DepthGuard depth(function);
  StepContext within = *caller.step();
  ++within.depth;
  return run_in(within, function, std::move(args), caller.device());
}

namespace {

// Every call goes through here.
[[gnu::always_inline]] inline std::shared_ptr<Executable> executable_of(Runtime& runtime,
                                                                        const StepContext& within,
                                                                        const Function& function,
                                                                        std::span<const Array> args,
                                                                        const Device& device) {
  const bool plain = !runtime.needs_placement() && !within.session;
  return plain ? plans_of(function)->get(runtime, function, args, nullptr, nullptr)
               : FunctionExecutor::prepare(function, args, device, &within);
}

[[gnu::always_inline]] inline std::vector<Array> run_part(Runtime& runtime,
                                                          const StepContext& within,
                                                          const Function& function,
                                                          std::vector<Array>&& args,
                                                          const Device& device) {
  check_args(function, args);
  const FunctionSpan span(function.name());
  const std::shared_ptr<Executable> plan = executable_of(runtime, within, function, args, device);
  const ScopedFlushDenormals flush;
  return plan->run(std::move(args), within);
}

}  // namespace

std::vector<Array> FunctionExecutor::run_in(const StepContext& within, const Function& function,
                                            std::vector<Array> args, const Device& device) {
  return run_part(Runtime::current(), within, function, std::move(args), device);
}

void FunctionExecutor::run_async(const Function& function, std::vector<Array> args,
                                 KernelContext& caller, Done done) {
  // Kept until the call is over.
  struct Call {
    StepContext within;
    std::shared_ptr<Executable> plan;
    Done done;
  };
  try {
    if (begins_step(caller)) {
      return done(nullptr, FunctionExecutor::call(function, std::move(args), caller.device()));
    }
    const auto call = std::make_shared<Call>();
    call->within = *caller.step();
    if (++call->within.depth > kDeepestCall) throw_too_deep(function);
    check_args(function, args);
    const FunctionSpan span(function.name());
    call->plan = prepare(function, args, caller.device(), &call->within);
    call->done = done;
    const ScopedFlushDenormals flush;
    call->plan->run_async(std::move(args), call->within,
                          [call](const std::exception_ptr& error, std::vector<Array> results) {
                            const Done finished = std::move(call->done);
                            finished(error, std::move(results));
                          });
  } catch (...) {
    done(std::current_exception(), {});
  }
}

void FunctionExecutor::copy_to_host_async(Array value, CopyDone done) {
  try {
    if (device_of(value) == nullptr || value.num_bytes() == 0)
      return done(nullptr, copy_to_host_unchecked(value));
    const Array copy(value.dtype(), value.shape());
    if (!is_computed(value)) mark_unmaterialized(copy);
    // What goes on from here does so in the caller's runtime, on whichever thread.
    start_transfer(
        value, copy,
        [context = thread_context(), value, copy, done](const std::exception_ptr& error) {
          const ThreadContextScope scope(context);
          done(error, error ? Array() : copy);
        });
  } catch (...) {
    done(std::current_exception(), Array());
  }
}

// Around a step of the calling thread, in its runtime.
template <class Body>
void FunctionExecutor::as_step(const Body& body) {
  ThreadContext& thread = thread_context();
  Runtime& runtime = thread.runtime ? *thread.runtime : Runtime::current();
  const std::shared_ptr<const Cancellation> own = thread.cancellation;
  RunningCalls& calls = runtime.running_calls();
  const RunningCalls::Scope running(calls);
  if (!runtime.needs_placement() && !StepRecorder::on() && !own) {
    StepScope scope(thread, nullptr);
    try {
      return body(runtime, scope.step());
    } catch (...) {
      scope.rethrow();
    }
  }
  // What waits in the step, a dequeue say, ends with the runtime as well. The thread's scope keeps
  // that for what outlives the call.
  runtime.check_open();
  const bool joined = own && own->joins(calls.closing());
  const std::shared_ptr<const Cancellation> both = !own     ? calls.closing()
                                                   : joined ? own
                                                            : calls.closing_or(own);
  const CancellationScope cancellation(own && !joined ? both : nullptr);
  StepScope scope(thread, both);
  try {
    body(runtime, scope.step());
  } catch (...) {
    scope.rethrow();
  }
}

std::vector<Array> FunctionExecutor::call(const Function& function, std::vector<Array> args,
                                          const Device& device) {
  DepthGuard depth(function);
  std::vector<Array> results;
  as_step([&](Runtime& runtime, const StepContext& within) {
    results = run_part(runtime, within, function, std::move(args), device);
  });
  return results;
}

void FunctionExecutor::call_between(const Function& function, std::span<Array> args,
                                    std::span<const Array> places, std::span<Array> results,
                                    const Device& device) {
  as_step([&](Runtime& runtime, const StepContext& within) {
    const FunctionSpan span(function.name());
    const std::shared_ptr<Executable> plan = executable_of(runtime, within, function, args, device);
    const ScopedFlushDenormals flush;
    plan->run_between(args, places, results, within);
  });
}

namespace {

bool waits(const Graph& graph, const KernelRegistry& kernels) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    const auto candidates = kernels.all(node->op().name);
    return std::any_of(candidates.begin(), candidates.end(),
                       [](const KernelDecl* k) { return k->run_async && !k->run; });
  });
}

}  // namespace

bool FunctionExecutor::may_wait(const Function& function, const Runtime& runtime) {
  if (runtime.devices().size() > 1) return true;
  return *function.derived<bool>(Function::kWaits, [&] {
    bool any = waits(function.body(), runtime.kernels());
    for (const Function* called : called_functions(function.body()))
      any = any || waits(called->body(), runtime.kernels());
    return std::make_shared<bool>(any);
  });
}

bool FunctionExecutor::calls_may_wait(const Node& node, const Runtime& runtime) {
  if (!calls_functions(node.kind())) return false;
  return std::any_of(node.attrs().begin(), node.attrs().end(), [&](const AttrMap::Entry& attr) {
    if (const auto* f = attr.value.get_if<FunctionRef>()) return *f && may_wait(**f, runtime);
    const auto* list = attr.value.get_if<std::vector<FunctionRef>>();
    return list && std::any_of(list->begin(), list->end(),
                               [&](const FunctionRef& f) { return f && may_wait(*f, runtime); });
  });
}

std::shared_ptr<Executable> FunctionExecutor::prepare(const Function& function,
                                                      std::span<const Array> args,
                                                      const Device& device,
                                                      const StepContext* within) {
  Runtime& runtime = Runtime::current();
  std::shared_ptr<NodeStates> part;
  NodeStates* session = nullptr;
  if (within && within->session) [[unlikely]] {
    part = session_part(function, *within);
    session = within->depth == 0 ? within->session : part.get();
  }
  if (!runtime.needs_placement())
    return plans_of(function)->get(runtime, function, args, nullptr, session);
  runtime.check_open();
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
  return plans_of(function)->get(runtime, function, args, &places, session);
}

}  // namespace tandem
