#include "tandem/runtime/execute/framed_plan.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/frame_tree.h"
#include "tandem/runtime/execute/framed_run.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/plan.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

constexpr double kWorthSharing = 30e-6;

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// Carried out by the executor itself.
bool needs_kernel(NodeKind kind) {
  switch (kind) {
    case NodeKind::kArg:
    case NodeKind::kConst:
    case NodeKind::kSwitch:
    case NodeKind::kMerge:
    case NodeKind::kEnter:
    case NodeKind::kExit:
    case NodeKind::kNextIteration:
    case NodeKind::kLoopCond: return false;
    default: return true;
  }
}

}  // namespace

FramedPlan::FramedPlan(Runtime& runtime, std::shared_ptr<const MutableFunction> function,
                       std::shared_ptr<NodeStates> states, const Placement* placement)
    : function_(std::move(function)),
      pool_(runtime.inter_op_pool()),
      host_(runtime.default_device()),
      several_memories_(placement != nullptr),
      states_(std::move(states)) {
  const std::vector<Node*> order = function_->graph.topological_order();
  make_steps(runtime, order, placement);
  connect(order);
  costs_ = std::make_unique<Cost[]>(steps_.size());
}

FramedPlan::~FramedPlan() = default;

void FramedPlan::make_steps(Runtime& runtime, const std::vector<Node*>& order,
                            const Placement* placement) {
  const FrameTree tree(function_->graph, order);
  for (const FrameTree::Frame& frame : tree.frames) {
    FramedLoop loop;
    loop.name = frame.name;
    loop.parent = frame.parent;
    loop.parallel_iterations = frame.parallel_iterations;
    if (frame.parent >= 0) loop.child = at(loops_, frame.parent).num_children++;
    loops_.push_back(std::move(loop));
  }
  step_of_.assign(static_cast<std::size_t>(function_->graph.id_limit()), -1);
  for (const Node* node : order) {
    FramedStep step;
    step.node = node;
    step.kind = node->kind();
    step.frame = at(tree.frame_of, node->id());
    FramedLoop& loop = at(loops_, step.frame);
    step.local = static_cast<int>(loop.steps.size());
    step.first_input = loop.num_inputs;
    step.num_inputs = static_cast<int>(node->inputs().size());
    step.first_output = loop.num_outputs;
    step.num_outputs = node->num_outputs();
    loop.num_inputs += step.num_inputs;
    loop.num_outputs += step.num_outputs;
    const int controls = static_cast<int>(node->control_inputs().size());
    loop.waiting.push_back(step.kind == NodeKind::kMerge ? controls : controls + step.num_inputs);
    const int number = static_cast<int>(steps_.size());
    loop.steps.push_back(number);
    if (step.kind == NodeKind::kExit) loop.exits.push_back(number);
    if (step.kind == NodeKind::kConst)
      step.constant = *node->attr<std::shared_ptr<const Array>>("value");
    if (step.kind == NodeKind::kEnter) {
      step.enters = at(tree.enters_into, node->id());
      step.is_constant = node->attr<bool>("is_constant");
      ++at(loops_, step.enters).num_enters;
    }
    has_transfers_ |= is_transfer(step.kind);
    step.runs_when_dead = node->op().traits.runs_when_dead;
    if (needs_kernel(step.kind)) {
      Device& device =
          placement ? *at(runtime.devices(), placement->device(*node)) : runtime.default_device();
      step.services = &runtime.services(device);
      if (device.memory_space() != nullptr && !calls_functions(step.kind) &&
          !is_transfer(step.kind)) {
        step.accelerator = &device;
        for (int i = 0; i < step.num_outputs && i < 32; ++i) {
          if (placement->output_memory(*node, i) == 0) step.host_outputs |= std::uint32_t{1} << i;
        }
      }
      step.kernels = &kernels_on(runtime, device, *node);
      step.asynchronous = FunctionExecutor::calls_may_wait(*node, runtime);
      if (node->op().traits.keeps_state) step.state = &states_->of(*node);
    }
    at(step_of_, node->id()) = number;
    steps_.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < function_->args.size(); ++i)
    at(steps_, at(step_of_, function_->args[i]->id())).arg = static_cast<int>(i);
  for (const FramedStep& step : steps_) {
    if (step.kind == NodeKind::kArg && step.arg < 0)
      throw InvalidArgumentError(cat(step.node->describe(), " is no argument of the function."));
  }
}

void FramedPlan::connect(const std::vector<Node*>& order) {
  const auto step_of = [&](const Node* node) -> FramedStep& {
    return at(steps_, at(step_of_, node->id()));
  };
  int widest_merge = 0;
  for (const Node* node : order) {
    const int number = at(step_of_, node->id());
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Output in = node->inputs()[i];
      step_of(in.node).edges.push_back({in.index, number, static_cast<int>(i)});
    }
    for (const Node* before : node->control_inputs())
      step_of(before).control_edges.push_back(number);
    if (node->kind() == NodeKind::kMerge)
      widest_merge = std::max(widest_merge, static_cast<int>(node->inputs().size()));
  }
  for (std::size_t r = 0; r < function_->results.size(); ++r) {
    const Output result = function_->results[r];
    FramedStep& step = step_of(result.node);
    const int visible = step.kind == NodeKind::kExit    ? at(loops_, step.frame).parent
                        : step.kind == NodeKind::kEnter ? step.enters
                                                        : step.frame;
    if (visible != 0) {
      throw InvalidArgumentError(cat(result.node->describe(),
                                     " lies inside of a loop, so its value cannot be fetched. "
                                     "Fetch the output of an Exit."));
    }
    step.edges.push_back({result.index, -1, static_cast<int>(r)});
  }
  for (FramedStep& step : steps_) {
    std::stable_sort(step.edges.begin(), step.edges.end(),
                     [](const auto& a, const auto& b) { return a.output < b.output; });
  }
  for (int i = 0; i < widest_merge; ++i) indices_.push_back(Array::scalar(std::int32_t{i}));
}

void FramedPlan::add_time(int step, double seconds, bool parallel_inside) const {
  Cost& cost = costs_[static_cast<std::size_t>(step)];
  // The first run pays for caches and page faults; after that a single quick one settles it.
  if (cost.runs.fetch_add(1, std::memory_order_relaxed) == 0) return;
  const bool heavy = seconds > kWorthSharing && !parallel_inside;
  if (!heavy) cost.runs.store(kTimed, std::memory_order_relaxed);
  cost.heavy.store(heavy, std::memory_order_relaxed);
}

std::unique_ptr<FramedRun> FramedPlan::acquire_run() {
  {
    std::lock_guard lock(runs_mutex_);
    if (!runs_.empty()) {
      std::unique_ptr<FramedRun> run = std::move(runs_.back());
      runs_.pop_back();
      return run;
    }
  }
  return std::make_unique<FramedRun>(*this);
}

// A run that failed half way is dropped, not cleaned.
void FramedPlan::release(std::unique_ptr<FramedRun> run) {
  if (!run->clean()) return;
  std::lock_guard lock(runs_mutex_);
  runs_.push_back(std::move(run));
}

std::vector<Array> FramedPlan::run(std::vector<Array> args, const StepContext& within) {
  std::unique_ptr<FramedRun> run = acquire_run();
  // A loop ends with the runtime.
  StepContext ending = within;
  if (!ending.cancellation)
    ending.cancellation = Runtime::current().running_calls().closing().get();
  std::vector<Array> results = (*run)(std::move(args), ending);
  release(std::move(run));
  return results;
}

void FramedPlan::run_async(std::vector<Array> args, const StepContext& within,
                           FunctionRunner::Done done) {
  try {
    const auto run = std::make_shared<std::unique_ptr<FramedRun>>(acquire_run());
    (*run)->start(std::move(args), within,
                  [this, run, done](const std::exception_ptr& error, std::vector<Array> results) {
                    if (!error) release(std::move(*run));
                    done(error, std::move(results));
                  });
  } catch (...) {
    done(std::current_exception(), {});
  }
}

}  // namespace tandem
