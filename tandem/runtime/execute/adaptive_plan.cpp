#include "tandem/runtime/execute/adaptive_plan.h"

#include <algorithm>
#include <chrono>

#include "tandem/core/error.h"
#include "tandem/runtime/execute/dataflow.h"
#include "tandem/runtime/execute/running_calls.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

constexpr int kWarmRuns = 2;   // first runs pay for caches, primitives and page faults
constexpr int kTrialRuns = 6;  // half of each schedule
constexpr double kMinGain = 30e-6;

// A result has memory of its own, so that its kernel may choose the shape.
void check_result(const Plan& plan, std::size_t r, const Array& value) {
  const Output result = plan.function().results[r];
  const PartialShape& declared = result.node->output_shape(result.index);
  if (is_ref(value.dtype()) || declared.is_compatible(value.shape())) [[likely]]
    return;
  throw InternalError(cat("The kernel of node '", result.node->name(), "' (",
                          result.node->op().name, ") gave output ", result.index, " shape ",
                          value.shape(), " but the op declares ", declared, "."));
}

}  // namespace

AdaptivePlan::AdaptivePlan(Runtime& runtime, std::shared_ptr<const MutableFunction> function,
                           ArgShapes arg_shapes, std::shared_ptr<NodeStates> states)
    : runtime_(runtime),
      function_(std::move(function)),
      arg_shapes_(std::move(arg_shapes)),
      states_(std::move(states)) {
  sequential_ =
      std::make_unique<Plan>(runtime, *function_, arg_shapes_, Schedule::kSequential, *states_);
  if (sequential_->has_asynchronous_steps()) {
    dataflow_ =
        std::make_unique<Plan>(runtime, *function_, arg_shapes_, Schedule::kDataflow, *states_);
    second_ = dataflow_.get();
    chosen_ = dataflow_.get();
  } else if (runtime.inter_op_pool().threads() == 1 || sequential_->steps().size() < 2) {
    chosen_ = sequential_.get();
  }
}

AdaptivePlan::~AdaptivePlan() = default;

std::vector<Array> AdaptivePlan::run(std::vector<Array> args, const StepContext& within) {
  if (Plan* plan = chosen_.load(std::memory_order_acquire))
    return run_plan(for_this_thread(*plan), std::move(args), within);
  return run_adapting(std::move(args), within);
}

std::vector<Array> AdaptivePlan::run_into(std::vector<Array> args, std::span<const Array> places,
                                          const StepContext& within) {
  Plan* plan = chosen_.load(std::memory_order_acquire);
  if (!plan) return run_adapting(std::move(args), within);
  return run_plan(for_this_thread(*plan), std::move(args), within, nullptr, places);
}

[[gnu::always_inline]] inline std::unique_ptr<Plan::Frame> AdaptivePlan::frame_for(
    Plan& plan, std::span<Array> args, std::span<const Array> places) {
  std::unique_ptr<Plan::Frame> frame = plan.acquire_frame(args);
  for (std::size_t i = 0; i < args.size(); ++i) {
    frame->values[static_cast<std::size_t>(plan.arg_slots()[i])] = std::move(args[i]);
  }
  if (!places.empty()) plan.place_results(*frame, places);
  return frame;
}

[[gnu::always_inline]] inline std::vector<Array> AdaptivePlan::results_of(
    Plan& plan, std::unique_ptr<Plan::Frame> frame, std::span<const Array> places) {
  std::vector<Array> results;
  results.reserve(plan.result_slots().size());
  for (int slot : plan.result_slots()) {
    results.push_back(frame->values[static_cast<std::size_t>(slot)]);
    check_result(plan, results.size() - 1, results.back());
  }
  if (!places.empty()) plan.forget_places(*frame);
  plan.release(std::move(frame));
  return results;
}

// A worker of the inter-op pool must not wait for others: it runs the steps by itself.
Plan& AdaptivePlan::for_this_thread(Plan& plan) const {
  const bool may_wait = plan.schedule() == Schedule::kDataflow;
  return may_wait && InterOpPool::on_worker() && !plan.has_asynchronous_steps() ? *sequential_
                                                                                : plan;
}

// The frame holds the results. Every call goes through here.
[[gnu::always_inline]] inline std::unique_ptr<Plan::Frame> AdaptivePlan::run_frame(
    Plan& plan, std::span<Array> args, const StepContext& within, std::vector<StepTime>* times,
    std::span<const Array> places) {
  // A frame whose run failed half way is dropped, not cleaned.
  std::unique_ptr<Plan::Frame> frame = frame_for(plan, args, places);
  if (plan.schedule() == Schedule::kSequential) {
    run_sequential(plan, *frame, within, times);
  } else {
    // What waits in the call, a dequeue say, ends with the runtime.
    StepContext waiting = within;
    if (!waiting.cancellation) waiting.cancellation = runtime_.running_calls().closing().get();
    run_dataflow(plan, *frame, waiting, runtime_.inter_op_pool());
  }
  return frame;
}

void AdaptivePlan::run_between(std::span<Array> args, std::span<const Array> places,
                               std::span<Array> results, const StepContext& within) {
  Plan* plan = chosen_.load(std::memory_order_acquire);
  if (!plan) return Executable::run_between(args, places, results, within);
  std::unique_ptr<Plan::Frame> frame = run_frame(*plan, args, within, nullptr, places);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i] = frame->values[static_cast<std::size_t>(plan->result_slots()[i])];
    check_result(*plan, i, results[i]);
  }
  if (!places.empty()) plan->forget_places(*frame);
  plan->release(std::move(frame));
}

void AdaptivePlan::run_async(std::vector<Array> args, const StepContext& within,
                             FunctionRunner::Done done) {
  std::vector<Array> results;
  try {
    Plan* const chosen = chosen_.load(std::memory_order_acquire);
    if (chosen && chosen->schedule() == Schedule::kDataflow) {
      const auto frame =
          std::make_shared<std::unique_ptr<Plan::Frame>>(frame_for(*chosen, args, {}));
      args.clear();
      return run_dataflow_async(*chosen, **frame, within, runtime_.inter_op_pool(),
                                [chosen, frame, done](const std::exception_ptr& error) {
                                  if (error) return done(error, {});
                                  done(nullptr, results_of(*chosen, std::move(*frame), {}));
                                });
    }
    results = run_plan(chosen ? *chosen : *sequential_, std::move(args), within);
  } catch (...) {
    return done(std::current_exception(), {});
  }
  done(nullptr, std::move(results));
}

const Plan* AdaptivePlan::next_plan() {
  if (const Plan* plan = chosen_.load(std::memory_order_acquire)) return plan;
  // Held for the whole of a call that measures, which may be one that asks.
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? &on_trial() : sequential_.get();
}

// Each in turn, once there are two.
Plan& AdaptivePlan::on_trial() const {
  return runs_ > kWarmRuns && runs_ % 2 ? *dataflow_ : *sequential_;
}

// Where sizes vary, times are compared for an element of the arguments.
double AdaptivePlan::work_of(std::span<const Array> args) const {
  if (!arg_shapes_.varying) return 1;
  double elements = 1;
  for (const Array& a : args) elements += static_cast<double>(a.num_elements());
  return elements;
}

std::size_t AdaptivePlan::idle_bytes() const {
  const Plan* const second = second_.load(std::memory_order_acquire);
  return sequential_->idle_bytes() + (second ? second->idle_bytes() : 0);
}

std::size_t AdaptivePlan::plan_bytes() const {
  const Plan* const second = second_.load(std::memory_order_acquire);
  return sequential_->plan_bytes() + (second ? second->plan_bytes() : 0);
}

void AdaptivePlan::free_idle_memory() {
  sequential_->free_idle_frames();
  if (Plan* const second = second_.load(std::memory_order_acquire)) second->free_idle_frames();
}

std::vector<Array> AdaptivePlan::run_adapting(std::vector<Array> args, const StepContext& within) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  // While one thread measures, others just run.
  if (!lock.owns_lock() || chosen_.load()) return run_plan(*sequential_, std::move(args), within);
  // Only runs that succeed are counted.
  if (runs_ < kWarmRuns) {
    ++runs_;
    lock.unlock();
    return run_plan(*sequential_, std::move(args), within);
  }
  if (runs_ == kWarmRuns) {
    std::vector<StepTime> times;
    std::vector<Array> results = run_plan(*sequential_, std::move(args), within, &times);
    if (may_gain(times)) {
      dataflow_ =
          std::make_unique<Plan>(runtime_, *function_, arg_shapes_, Schedule::kDataflow, *states_);
      second_.store(dataflow_.get(), std::memory_order_release);
      ++runs_;
    } else {
      chosen_.store(sequential_.get(), std::memory_order_release);
    }
    return results;
  }
  Plan& plan = on_trial();
  double& best = runs_ % 2 ? best_dataflow_ : best_sequential_;
  const double work = work_of(args);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Array> results = run_plan(plan, std::move(args), within);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / work;
  best = best == 0 ? seconds : std::min(best, seconds);
  if (runs_++ >= kWarmRuns + kTrialRuns) {
    chosen_.store(best_dataflow_ < 0.95 * best_sequential_ ? dataflow_.get() : sequential_.get(),
                  std::memory_order_release);
  }
  return results;
}

// Side by side can at best take as long as the longest path, or as all work shared evenly; kernels
// that use the intra-op workers share it already.
bool AdaptivePlan::may_gain(const std::vector<StepTime>& times) const {
  const auto& steps = sequential_->steps();
  std::vector<double> finish(steps.size(), 0);
  double serial = 0, parallel_inside = 0, longest = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    double start = 0;
    for (int b : steps[s].before) start = std::max(start, finish[static_cast<std::size_t>(b)]);
    finish[s] = start + times[s].seconds;
    longest = std::max(longest, finish[s]);
    (times[s].parallel_inside ? parallel_inside : serial) += times[s].seconds;
  }
  const double threads = runtime_.inter_op_pool().threads();
  const double best = std::max(longest, parallel_inside + serial / threads);
  const double now = serial + parallel_inside;
  return now - best > kMinGain && best < 0.8 * now;
}

std::vector<Array> AdaptivePlan::run_plan(Plan& plan, std::vector<Array> args,
                                          const StepContext& within, std::vector<StepTime>* times,
                                          std::span<const Array> places) {
  std::unique_ptr<Plan::Frame> frame = run_frame(plan, args, within, times, places);
  return results_of(plan, std::move(frame), places);
}

}  // namespace tandem
