#include "tandem/runtime/execute/dataflow.h"

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/graph/collectives.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

using RunDone = std::function<void(std::exception_ptr)>;

class Run {
 public:
  Run(const Plan& plan, Plan::Frame& frame, const StepContext& within, InterOpPool& pool)
      : plan_(plan),
        frame_(frame),
        within_(within),
        pool_(pool),
        context_(thread_context()),
        waiting_(plan.steps().size()),
        lost_(plan.steps().size()),
        readers_(plan.readers().size()),
        left_(plan.steps().size()),
        recorder_(within.recorder) {
    if (recorder_) {
      recorded_ = &recorder_->plan(plan.id(), [&](const auto& note) {
        for (const Step& step : plan.steps()) note(*step.node);
      });
    }
    for (std::size_t s = 0; s < waiting_.size(); ++s) {
      waiting_[s].store(static_cast<int>(plan.steps()[s].before.size()), std::memory_order_relaxed);
    }
    for (std::size_t s = 0; s < readers_.size(); ++s)
      readers_[s].store(plan.readers()[s], std::memory_order_relaxed);
  }

  // Returns when every step has ended, also those of other threads.
  void operator()() {
    start();
    while (left_.load(std::memory_order_acquire) != 0) {
      if (pool_.help()) continue;
      std::unique_lock lock(mutex_);
      if (left_.load() == 0 || tasks_queued_ > 0) continue;
      changed_.wait(lock);
    }
    // The last step's thread may still hold the lock.
    std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  // Returns soon; when every step has ended `done` is called, and the run is gone.
  static void start_alone(std::unique_ptr<Run> run, RunDone done) {
    Run& r = *run;
    r.done_ = std::move(done);
    r.self_ = std::move(run);
    r.start();
  }

 private:
  void start() {
    std::vector<int> ready;
    for (std::size_t s = 0; s < waiting_.size(); ++s) {
      if (plan_.steps()[s].before.empty()) ready.push_back(static_cast<int>(s));
    }
    share(ready);
    work(std::move(ready));
  }

  // Gives all but one of the ready steps to other threads, if the pool has any. With no step ready
  // another thread may have ended the run, which is gone then.
  void share(std::vector<int>& ready) {
    if (ready.size() < 2 || pool_.threads() == 1) return;
    while (ready.size() > 1) {
      const int step = ready.back();
      ready.pop_back();
      {
        std::lock_guard lock(mutex_);
        ++tasks_queued_;
        changed_.notify_all();
      }
      pool_.schedule([this, step] {
        {
          std::lock_guard lock(mutex_);
          --tasks_queued_;
        }
        ThreadContextScope scope(context_);
        work({step});
      });
    }
  }

  void work(std::vector<int> ready) {
    while (!ready.empty()) {
      const int s = ready.back();
      ready.pop_back();
      if (!begin(s)) continue;  // goes on in its callback
      if (!finish(s, ready)) return;
      share(ready);
    }
  }

  // Runs a step; false if it is asynchronous and will end later.
  bool begin(int s) {
    const Step& step = plan_.steps()[static_cast<std::size_t>(s)];
    if (lost_[static_cast<std::size_t>(s)].load(std::memory_order_acquire)) return true;
    KernelContext& context = frame_.contexts[static_cast<std::size_t>(s)];
    context.step_ = &within_;
    try {
      if (within_.cancellation) within_.cancellation->check();
      const KernelDecl& kernel = step.kernels->choose(context);
      const StepRecorder::Time start = recorder_ ? StepRecorder::now() : 0;
      if (kernel.run && !(step.asynchronous && kernel.run_async)) {
        run_kernel(kernel, context);
        if (recorder_) record(step, context, start, recorder_->kernel_track(context.device()));
        return true;
      }
      context.begin_outputs();
      kernel.run_async(
          context, [this, s, &step, &context, start, name = kernel.name](std::exception_ptr error) {
            if (!error) error = output_failure(context, name);
            if (recorder_ && !error)
              record(step, context, start, recorder_->waiting_track(context.device()));
            if (error) fail(s, node_failure(*step.node, context, error));
            std::vector<int> ready;
            ThreadContextScope scope(context_);
            if (!finish(s, ready)) return;
            share(ready);
            work(std::move(ready));
          });
      return false;
    } catch (...) {
      fail(s, node_failure(*step.node, context));
      return true;
    }
  }

  void record(const Step& step, const KernelContext& context, StepRecorder::Time start, int track) {
    recorder_->kernel(track, recorded_->of(*step.node), start, StepRecorder::now(),
                      StepRecorder::bytes_of(context));
  }

  void fail(int s, std::exception_ptr error) {
    lost_[static_cast<std::size_t>(s)].store(true, std::memory_order_release);
    {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    // Other parts, and members of groups, wait for what does not come any more.
    if (within_.collectives) within_.collectives->start_abort(error);
    if (within_.rendezvous) within_.rendezvous->start_abort(std::move(error));
  }

  // False if that was the last step: the run may be gone.
  bool finish(int s, std::vector<int>& ready) {
    const Step& step = plan_.steps()[static_cast<std::size_t>(s)];
    const bool lost = lost_[static_cast<std::size_t>(s)].load(std::memory_order_relaxed);
    for (int slot : step.inputs) {
      auto& readers = readers_[static_cast<std::size_t>(slot)];
      if (plan_.readers()[static_cast<std::size_t>(slot)] != 0 &&
          readers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        frame_.values[static_cast<std::size_t>(slot)] = Array();
      }
    }
    for (int next : step.after) {
      if (lost) lost_[static_cast<std::size_t>(next)].store(true, std::memory_order_release);
      if (waiting_[static_cast<std::size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) == 1)
        ready.push_back(next);
    }
    // The last one counts down under the lock: the run ends as soon as nothing is left.
    std::size_t left = left_.load(std::memory_order_acquire);
    while (left > 1) {
      if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) return true;
    }
    if (done_) {
      const std::unique_ptr<Run> self = std::move(self_);
      done_(error_);
      return false;
    }
    std::lock_guard lock(mutex_);
    left_.store(0, std::memory_order_release);
    changed_.notify_all();
    return false;
  }

  const Plan& plan_;
  Plan::Frame& frame_;
  const StepContext& within_;
  InterOpPool& pool_;
  const ThreadContext context_;
  std::vector<std::atomic<int>> waiting_;
  std::vector<std::atomic<bool>> lost_;
  std::vector<std::atomic<int>> readers_;
  std::atomic<std::size_t> left_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int tasks_queued_ = 0;
  std::exception_ptr error_;
  StepRecorder* const recorder_;  // null: nothing records
  const RecordedPlan* recorded_ = nullptr;
  RunDone done_;  // null: a thread waits for the end
  std::unique_ptr<Run> self_;
};

}  // namespace

void run_dataflow(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                  InterOpPool& pool) {
  if (plan.steps().empty()) return;
  assert(!InterOpPool::on_worker() || !plan.has_asynchronous_steps());
  Run run(plan, frame, within, pool);
  run();
}

void run_dataflow_async(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                        InterOpPool& pool, std::function<void(std::exception_ptr)> done) {
  if (plan.steps().empty()) return done(nullptr);
  Run::start_alone(std::make_unique<Run>(plan, frame, within, pool), std::move(done));
}

}  // namespace tandem
