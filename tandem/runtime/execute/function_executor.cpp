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
#include "tandem/graph/internal/frames.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/execute/adaptive_plan.h"
#include "tandem/runtime/execute/device_plan.h"
#include "tandem/runtime/execute/framed_plan.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace/called_functions.h"

namespace tandem {
namespace {

constexpr std::size_t kPlansKept = 32;
constexpr int kDeepestCall = 200;

// Where a call finds its arguments, and the device of what asks for none.
struct CallPlaces {
  ArgPlaces args;
  int default_device = -1;
  std::vector<bool> lost;       // by device; empty if none is
  bool unmaterialized = false;  // an argument on the host was not computed
  bool operator==(const CallPlaces&) const = default;
};

bool some_do_not_compute(const Runtime& runtime) {
  const auto& devices = runtime.devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& device) { return !device->properties().computes; });
}

// Variables may hold what was not computed by the time they are read.
bool uses_resources(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    const std::vector<DType>& made = node->output_dtypes();
    return std::any_of(made.begin(), made.end(),
                       [](DType t) { return t == DType::kResource || is_ref(t); });
  });
}

// The plans of one function in one runtime.
class PlanCache {
 public:
  // `places`: null where there is one device.
  [[gnu::always_inline]] std::shared_ptr<Executable> get(Runtime& runtime, const Function& function,
                                                         std::span<const Array> args,
                                                         const CallPlaces* places) {
    std::lock_guard lock(mutex_);
    if (runtime_id_ != runtime.id()) {
      forget();
      states_ = std::make_shared<NodeStates>();
      choice_.reset();
      runtime_id_ = runtime.id();
    }
    if (const std::uint64_t version = default_options().optimizer_version();
        version != options_version_) {
      forget();
      options_version_ = version;
    }
    if (framed_ && (!places || placed_alike(framed_places_, *places))) return framed_;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!fits(plans_[i].shapes, args) || !fits(plans_[i].places, places)) continue;
      const auto at = plans_.begin() + static_cast<std::ptrdiff_t>(i);
      if (i != 0) std::rotate(plans_.begin(), at, at + 1);
      return plans_.front().plan;
    }
    return make(runtime, function, args, places);
  }

  // By what the function has been placed in the runtime, if it has.
  std::optional<PlacementChoice> choice(const Runtime& runtime) {
    std::lock_guard lock(mutex_);
    return runtime_id_ == runtime.id() ? choice_ : std::nullopt;
  }

  // The next call places anew, by what the runtime then says.
  void forget_places() {
    std::lock_guard lock(mutex_);
    plans_.clear();
    framed_.reset();
    choice_.reset();
  }

 private:
  // Kept out of `get`, which every call goes through.
  [[gnu::noinline]] std::shared_ptr<Executable> make(Runtime& runtime, const Function& function,
                                                     std::span<const Array> args,
                                                     const CallPlaces* places) {
    if (!optimized_) {
      auto body = std::make_shared<MutableFunction>(function);
      prepare(*body, runtime.ops());
      check_requests(runtime, *body);
      KernelEvaluator evaluator(runtime);
      options_ = default_options().optimizer();
      if (!function.may_optimize()) options_.disable_meta_optimizer = true;
      if (!options_.disable_meta_optimizer) optimize(*body, runtime.ops(), evaluator, options_);
      holds_control_flow_ = holds_control_flow(body->graph);
      optimized_ = std::move(body);
    }
    if (holds_control_flow_) return framed_ = framed(runtime, optimized_, places);
    Entry entry;
    for (const Array& a : args) entry.shapes.push_back(a.shape());
    auto body = optimized_;
    if (!options_.disable_meta_optimizer) {
      body = std::make_shared<MutableFunction>(optimized_->clone());
      KernelEvaluator evaluator(runtime);
      specialize(*body, {entry.shapes.begin(), entry.shapes.end()}, runtime.ops(), evaluator,
                 options_);
    }
    if (places) {
      entry.places = std::make_unique<const CallPlaces>(*places);
      entry.plan = on_devices(runtime, *body, entry);
    }
    if (!entry.plan)
      entry.plan = std::make_shared<AdaptivePlan>(runtime, body, entry.shapes, states_);
    if (plans_.size() == kPlansKept) plans_.pop_back();
    plans_.insert(plans_.begin(), std::move(entry));
    return plans_.front().plan;
  }

  struct Entry {
    std::vector<Shape> shapes;
    std::unique_ptr<const CallPlaces> places;
    std::shared_ptr<Executable> plan;
  };
  std::shared_ptr<Executable> framed(Runtime& runtime, std::shared_ptr<MutableFunction> body,
                                     const CallPlaces* places) {
    if (!places) return std::make_shared<FramedPlan>(runtime, std::move(body), states_);
    framed_places_ = *places;
    const Placement placement = place_nodes(runtime, *body, places->args, places->default_device,
                                            placement_choice(runtime));
    return std::make_shared<FramedPlan>(runtime, std::move(body), states_, &placement);
  }
  // Null if the first CPU does everything, with values that are there.
  std::shared_ptr<Executable> on_devices(Runtime& runtime, const MutableFunction& body,
                                         const Entry& entry) {
    auto placed = std::make_shared<PlacedFunction>(
        place_function(runtime, with_shapes(body, entry.shapes), entry.places->args,
                       entry.places->default_device, placement_choice(runtime)));
    if (on_one_cpu(*placed) && !entry.places->unmaterialized &&
        !(some_do_not_compute(runtime) && uses_resources(placed->function.graph)))
      return nullptr;
    return std::make_shared<DevicePlan>(runtime, std::move(placed), states_);
  }
  const PlacementChoice& placement_choice(const Runtime& runtime) {
    if (!choice_) choice_ = PlacementChoice::of(runtime);
    return *choice_;
  }
  // What is not computed is found as the graph runs.
  static bool placed_alike(const CallPlaces& a, const CallPlaces& b) {
    return a.default_device == b.default_device && a.args == b.args && a.lost == b.lost;
  }
  static bool fits(const std::unique_ptr<const CallPlaces>& made_for, const CallPlaces* places) {
    if (!places || !made_for) return !places && !made_for;
    return *made_for == *places;
  }
  static bool fits(const std::vector<Shape>& shapes, std::span<const Array> args) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!(shapes[i] == args[i].shape())) return false;
    }
    return true;
  }
  void forget() {
    plans_.clear();
    framed_.reset();
    optimized_.reset();
  }
  std::mutex mutex_;
  std::uint64_t runtime_id_ = 0;
  std::uint64_t options_version_ = 0;
  std::optional<PlacementChoice> choice_;  // none: nothing has been placed
  OptimizerOptions options_;               // under which `optimized_` was made
  std::shared_ptr<MutableFunction> optimized_;
  std::shared_ptr<NodeStates> states_;
  std::vector<Entry> plans_;
  bool holds_control_flow_ = false;     // of `optimized_`
  std::shared_ptr<Executable> framed_;  // serves all shapes, for the latest places
  CallPlaces framed_places_;
};

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
