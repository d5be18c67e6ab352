#include "tandem/runtime/execute/sequential.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/profile/step_recorder.h"

namespace tandem {
namespace {

void release(const Step& step, Plan::Frame& frame) {
  for (int slot : step.release) frame.values[static_cast<std::size_t>(slot)] = Array();
}

// After a failure at `failed`: what depends on it is skipped and inherits it, the rest still runs.
void run_independent(const Plan& plan, Plan::Frame& frame, std::size_t failed,
                     const StepContext& within) {
  const auto& steps = plan.steps();
  std::vector<bool> lost(steps.size(), false);
  lost[failed] = true;
  for (std::size_t i = failed + 1; i < steps.size(); ++i) {
    const auto& before = steps[i].before;
    lost[i] = std::any_of(before.begin(), before.end(),
                          [&](int s) { return lost[static_cast<std::size_t>(s)]; });
    if (lost[i]) continue;
    if (within.cancellation && within.cancellation->cancelled()) return;
    frame.contexts[i].step_ = &within;
    try {
      run_kernel(steps[i].kernels->choose(frame.contexts[i]), frame.contexts[i]);
    } catch (...) {
      lost[i] = true;  // the first error is the one to report
    }
  }
}

// Watches the steps where somebody wants their times.
class StepClock {
 public:
  StepClock(const Plan& plan, StepRecorder* recorder, std::vector<StepTime>* times)
      : times_(times), recorder_(recorder) {
    if (recorder_) {
      recorded_ = &recorder_->plan(plan.id(), [&](const auto& note) {
        for (const Step& step : plan.steps()) note(*step.node);
      });
      track_ = recorder_->kernel_track(*plan.services().device);
    }
    begin(StepRecorder::now());
  }
  void end_step(const Step& step) {
    const StepRecorder::Time now = StepRecorder::now();
    if (times_) {
      times_->push_back(
          {1e-9 * static_cast<double>(now - start_), IntraOpPool::uses_by_this_thread() != uses_});
    }
    if (recorder_) recorder_->kernel(track_, recorded_->of(*step.node), start_, now);
    begin(now);
  }

 private:
  void begin(StepRecorder::Time now) {
    if (times_) uses_ = IntraOpPool::uses_by_this_thread();
    start_ = now;
  }
  std::vector<StepTime>* times_;
  std::uint64_t uses_ = 0;
  StepRecorder::Time start_ = 0;
  StepRecorder* const recorder_;
  const RecordedPlan* recorded_ = nullptr;
  int track_ = 0;
};

}  // namespace

void run_sequential(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                    std::vector<StepTime>* times) {
  const auto& steps = plan.steps();
  std::optional<StepClock> clock;
  if (times || within.recorder) clock.emplace(plan, within.recorder, times);
  const Cancellation* const cancellation = within.cancellation;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    KernelContext& context = frame.contexts[i];
    context.step_ = &within;  // what a failure is reported to, before anything can fail
    try {
      if (cancellation) cancellation->check();
      run_kernel(step.kernels->choose(context), context);
    } catch (...) {
      const std::exception_ptr error = node_failure(*step.node, context);
      const bool stopped =
          code_of(error) == Code::kCancelled || (cancellation && cancellation->cancelled());
      if (!stopped) run_independent(plan, frame, i, within);
      std::rethrow_exception(error);
    }
    if (!step.release.empty()) release(step, frame);
    if (clock) clock->end_step(step);
  }
}

}  // namespace tandem
