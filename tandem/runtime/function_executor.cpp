#include "tandem/runtime/function_executor.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/op_failure.h"
#include "tandem/runtime/plan.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/wait_for_kernel.h"

namespace tandem {
namespace {

constexpr std::size_t kPlansKept = 32;
constexpr int kDeepestCall = 200;

// Folds constants by running the node's kernel.
class KernelEvaluator final : public Evaluator {
 public:
  explicit KernelEvaluator(Runtime& runtime) : runtime_(runtime) {}

  std::optional<std::vector<Array>> evaluate(const Node& node, std::span<const Array> inputs) override {
    const Device& device = runtime_.default_device();
    const KernelList* kernels = runtime_.kernels().find(node.op(), device.kernel_class(), node.attrs());
    if (!kernels) return std::nullopt;
    std::vector<const Array*> in;
    for (const Array& a : inputs) in.push_back(&a);
    std::vector<Array> outputs(static_cast<std::size_t>(node.num_outputs()));
    std::vector<Array*> out;
    for (Array& a : outputs) out.push_back(&a);
    KernelContext context;
    context.op_ = &node.op();
    context.attrs_ = &node.attrs();
    context.node_name_ = node.name();
    context.inputs_ = in.data();
    context.outputs_ = out.data();
    context.output_dtypes_ = node.output_dtypes().data();
    context.num_inputs_ = static_cast<int>(in.size());
    context.num_outputs_ = static_cast<int>(out.size());
    context.services_ = &runtime_.services(device);
    const KernelDecl& kernel = kernels->choose(context);
    if (!kernel.run) return std::nullopt;
    kernel.run(context);
    return outputs;
  }

 private:
  Runtime& runtime_;
};

// The plans of one function in one runtime.
class PlanCache {
 public:
  std::shared_ptr<Plan> get(Runtime& runtime, const Function& function, const std::vector<Array>& args) {
    std::lock_guard lock(mutex_);
    if (runtime_id_ != runtime.id()) {
      plans_.clear();
      optimized_.reset();
      runtime_id_ = runtime.id();
    }
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!fits(plans_[i].shapes, args)) continue;
      if (i != 0) std::rotate(plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(i), plans_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return plans_.front().plan;
    }
    if (!optimized_) {
      optimized_ = std::make_unique<MutableFunction>(function);
      KernelEvaluator evaluator(runtime);
      optimize(*optimized_, runtime.ops(), evaluator);
    }
    Entry entry;
    for (const Array& a : args) entry.shapes.push_back(a.shape());
    entry.plan = std::make_shared<Plan>(runtime, *optimized_, entry.shapes);
    if (plans_.size() == kPlansKept) plans_.pop_back();
    plans_.insert(plans_.begin(), std::move(entry));
    return plans_.front().plan;
  }

 private:
  struct Entry {
    std::vector<Shape> shapes;
    std::shared_ptr<Plan> plan;
  };
  static bool fits(const std::vector<Shape>& shapes, const std::vector<Array>& args) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!(shapes[i] == args[i].shape())) return false;
    }
    return true;
  }
  std::mutex mutex_;
  std::uint64_t runtime_id_ = 0;
  std::unique_ptr<MutableFunction> optimized_;
  std::vector<Entry> plans_;
};

void run_step(const Step& step, KernelContext& context) {
  const KernelDecl& kernel = step.kernels->choose(context);
  if (kernel.run) {
    kernel.run(context);
  } else {
    wait_for_kernel(kernel, context);
  }
}

void release(const Step& step, Plan::Frame& frame) {
  for (int slot : step.release) frame.values[static_cast<std::size_t>(slot)] = Array();
}

// After a failure at `failed`: what depends on it is skipped and inherits it, the rest still runs.
void run_independent(const Plan& plan, Plan::Frame& frame, std::size_t failed) {
  const auto& steps = plan.steps();
  std::vector<bool> lost(steps.size(), false);
  lost[failed] = true;
  for (std::size_t i = failed + 1; i < steps.size(); ++i) {
    const auto& before = steps[i].before;
    lost[i] = std::any_of(before.begin(), before.end(), [&](int s) { return lost[static_cast<std::size_t>(s)]; });
    if (lost[i]) continue;
    try {
      run_step(steps[i], frame.contexts[i]);
    } catch (...) {
      lost[i] = true;  // the first error is the one to report
    }
  }
}

void run_steps(const Plan& plan, Plan::Frame& frame, const Cancellation* cancellation) {
  const auto& steps = plan.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    KernelContext& context = frame.contexts[i];
    try {
      if (cancellation) cancellation->check();
      context.cancellation_ = cancellation;
      run_step(step, context);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      const std::exception_ptr error = node_failure(*step.node, context);
      run_independent(plan, frame, i);
      std::rethrow_exception(error);
    }
    if (!step.release.empty()) release(step, frame);
  }
}

int& call_depth() {
  thread_local int depth = 0;
  return depth;
}

struct DepthGuard {
  explicit DepthGuard(const Function& function) {
    if (++call_depth() > kDeepestCall) {
      --call_depth();
      throw FailedPreconditionError(cat("Function '", function.name(), "' calls itself more than ", kDeepestCall,
                                        " times deep. Does its recursion end?"));
    }
  }
  ~DepthGuard() { --call_depth(); }
};

}  // namespace

std::vector<Array> FunctionExecutor::run(const Function& function, std::vector<Array> args, KernelContext& caller) {
  DepthGuard depth(function);
  if (args.size() != function.args().size()) {
    throw InvalidArgumentError(cat("Function '", function.name(), "' takes ", function.args().size(), " arguments but got ",
                                   args.size(), "."));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Node& arg = *function.args()[i];
    if (base_dtype(args[i].dtype()) != base_dtype(arg.output_dtype(0)) || !arg.output_shape(0).is_compatible(args[i].shape())) {
      throw InvalidArgumentError(cat("Function '", function.name(), "': argument ", i, " must be ", arg.output_dtype(0),
                                     arg.output_shape(0), " but is ", args[i].dtype(), args[i].shape(), "."));
    }
  }
  const auto cache = function.derived<PlanCache>(Function::kPlans, [] { return std::make_shared<PlanCache>(); });
  const std::shared_ptr<Plan> plan = cache->get(Runtime::current(), function, args);

  // A frame that failed half way is dropped rather than cleaned.
  std::unique_ptr<Plan::Frame> frame = plan->take_frame();
  for (std::size_t i = 0; i < args.size(); ++i) {
    frame->values[static_cast<std::size_t>(plan->arg_slots()[i])] = std::move(args[i]);
  }
  run_steps(*plan, *frame, caller.cancellation());
  std::vector<Array> results;
  results.reserve(plan->result_slots().size());
  for (int slot : plan->result_slots()) results.push_back(frame->values[static_cast<std::size_t>(slot)]);
  plan->give_back(std::move(frame));
  return results;
}

}  // namespace tandem
