#include "tandem/runtime/internal/sequential.h"

#include <algorithm>
#include <chrono>

#include "tandem/core/error.h"
#include "tandem/runtime/internal/op_failure.h"

namespace tandem {
namespace {

void release(const Step& step, Plan::Frame& frame) {
  for (int slot : step.release) frame.values[static_cast<std::size_t>(slot)] = Array();
}

// After a failure at `failed`: what depends on it is skipped and inherits it, the rest still runs.
void run_independent(const Plan& plan, Plan::Frame& frame, std::size_t failed,
                     const Cancellation* cancellation) {
  const auto& steps = plan.steps();
  std::vector<bool> lost(steps.size(), false);
  lost[failed] = true;
  for (std::size_t i = failed + 1; i < steps.size(); ++i) {
    const auto& before = steps[i].before;
    lost[i] = std::any_of(before.begin(), before.end(),
                          [&](int s) { return lost[static_cast<std::size_t>(s)]; });
    if (lost[i]) continue;
    if (cancellation && cancellation->cancelled()) return;
    frame.contexts[i].cancellation_ = cancellation;
    try {
      steps[i].kernels->choose(frame.contexts[i]).run(frame.contexts[i]);
    } catch (...) {
      lost[i] = true;  // the first error is the one to report
    }
  }
}

class StepClock {
 public:
  explicit StepClock(std::vector<StepTime>* times) : times_(times) { begin(); }
  void end_step() {
    if (!times_) return;
    const auto now = std::chrono::steady_clock::now();
    times_->push_back({std::chrono::duration<double>(now - start_).count(),
                       IntraOpPool::uses_by_this_thread() != uses_});
    begin();
  }

 private:
  void begin() {
    if (!times_) return;
    uses_ = IntraOpPool::uses_by_this_thread();
    start_ = std::chrono::steady_clock::now();
  }
  std::vector<StepTime>* times_;
  std::uint64_t uses_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

void run_sequential(const Plan& plan, Plan::Frame& frame, const Cancellation* cancellation,
                    std::vector<StepTime>* times) {
  const auto& steps = plan.steps();
  StepClock clock(times);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    KernelContext& context = frame.contexts[i];
    try {
      if (cancellation) cancellation->check();
      context.cancellation_ = cancellation;
      step.kernels->choose(context).run(context);
    } catch (...) {
      const std::exception_ptr error = node_failure(*step.node, context);
      if (code_of(error) != Code::kCancelled) run_independent(plan, frame, i, cancellation);
      std::rethrow_exception(error);
    }
    if (!step.release.empty()) release(step, frame);
    clock.end_step();
  }
}

}  // namespace tandem
