#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/framed_copies.h"
#include "tandem/runtime/execute/framed_plan.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

/// One call of a framed plan, and the memory for the next one.
///
/// One thread at a time does all the bookkeeping: it alone touches frames, iterations and counts.
/// That is the calling thread, or, for a run that no thread waits for, whichever thread has ended a
/// step. Kernels run on it too, but for those that wait (asynchronous ones) and those worth
/// sharing, which run on the pool while others are ready; they report back through `done_`.
///
/// A value that a Switch did not choose is dead: steps with a dead input do not run and their
/// outputs are dead in turn, until a Merge takes the other branch's value or a loop ends. A failed
/// step's outputs are dead too, so what depends on it is skipped while the rest goes on; loops that
/// it belongs to start no further iteration.
///
/// Where there are several memories, a step that needs a value in another one than it lies in is
/// put off until a copy has come; nothing waits for it but what needs it. The value and its copy go
/// on together, so that others, and later iterations of a loop that a constant Enter leads into,
/// find the copy.
class FramedRun {
 public:
  explicit FramedRun(const FramedPlan& plan);
  ~FramedRun();
  FramedRun(const FramedRun&) = delete;
  FramedRun& operator=(const FramedRun&) = delete;

  /// Returns when all steps have ended, also those of other threads. Throws the first failure.
  std::vector<Array> operator()(std::vector<Array> args, const StepContext& within);
  /// The same without a thread that waits: whichever thread ends a step goes on with the
  /// bookkeeping, one at a time. Calls `done` once, perhaps before it returns.
  void start(std::vector<Array> args, const StepContext& within, FunctionRunner::Done done);
  /// Whether the last call has left nothing behind, so that another may follow.
  bool clean() const { return clean_; }

 private:
  struct Frame;
  struct Iteration;
  struct Ready {
    Iteration* iteration;
    int step;
    bool dead;
  };
  using Arrival = FramedArrival<Ready>;
  using Copies = FramedCopies<Ready>;
  struct Value {
    Array array;
    Ref<Copies> copies = {};  // null where there is one memory
  };
  // The state of one iteration of a frame: its steps' inputs, outputs and counts.
  struct Iteration {
    Frame* frame = nullptr;
    std::int64_t number = 0;  // among its frame's
    int active = 0;           // steps ready or running, and inner loops
    int held = 0;             // input slots that hold a value
    std::vector<int> waiting;
    std::vector<int> dead;
    std::vector<std::uint8_t> arrived;  // of a Merge: a live value is there
    std::vector<Array> inputs;
    std::vector<Array> outputs;
    std::vector<Ref<Copies>> input_copies;  // these three: empty where there is one memory
    std::vector<Ref<Copies>> output_copies;
    std::vector<int> arriving;  // inputs that are on their way
    std::vector<Frame*> children;
    std::vector<KernelContext> contexts;
    std::vector<const Array*> input_pointers;
    std::vector<Array*> output_pointers;
  };
  struct Handed {
    int step;
    Value value;
    bool dead;
  };
  // A loop that one iteration of its parent has entered, or the graph itself.
  struct Frame {
    int loop = 0;
    std::uint64_t id = 0;  // see `child_frame`; 0 where nothing is sent or received
    std::int64_t next_number = 0;
    Frame* parent = nullptr;
    Iteration* parent_iteration = nullptr;
    int pending_enters = 0;
    std::vector<Iteration*> live;  // oldest first
    std::vector<Handed> constants;
    std::vector<Handed> next;  // for an iteration that has to wait until an older one ends
    std::vector<std::uint8_t> exited;
    bool failed = false;  // starts no further iteration
  };
  struct Done {
    Ready entry;
    std::exception_ptr error;
    Ref<Arrival> arrival = {};  // if given, a copy is over, and no step
    Ref<Copies> copies = {};    // of the value that was copied
  };

  void begin(std::vector<Array> args, const StepContext& within);
  void run_ready();
  void collect();
  std::vector<Array> finish_run();
  void drive();

  void process(const Ready& entry);
  void run_kernel(const Ready& entry);
  void record(const FramedStep& step, const KernelContext& context, StepRecorder::Time start,
              int track);
  void run_here(const Ready& entry, const KernelDecl& kernel, KernelContext& context);
  void run_on_device(const Ready& entry);
  bool bring_inputs(const Ready& entry);
  bool bring_input(const Ready& entry, int i);
  Arrival& arrival_of(Copies& copies, const Array& value, Device* to);
  void arrived(Arrival& arrival, std::exception_ptr error);
  void record_on_device(const FramedStep& step, const KernelContext& context,
                        StepRecorder::Time begin);
  void record_copy(const Copies& copies, const Device* from, const Device* to, double bytes,
                   StepRecorder::Time begin);
  StepRecorder::Time begin_on(int track, StepRecorder::Time begin, StepRecorder::Time end);
  Value take_input(const FramedStep& step, int i, Iteration& iteration);
  void forward(const FramedStep& step, int input, int output, Iteration& iteration);
  void run_elsewhere(const Ready& entry, const KernelDecl& kernel);
  void report(Done done);
  void wait_for_others();
  void finish(const Ready& entry, std::exception_ptr error);
  void fail(Frame& frame, std::exception_ptr error);

  void run_switch(const Ready& entry);
  void run_merge(const Ready& entry);
  void run_enter(const Ready& entry);
  void run_exit(const Ready& entry);
  void run_next(const Ready& entry);

  void clear_inputs(const FramedStep& step, Iteration& iteration);
  void end(const Ready& entry);
  void send_outputs(const FramedStep& step, Iteration& from, bool dead);
  void send(const FramedStep& step, Iteration& to, Value&& value, bool dead);
  void send_copy(const FramedStep& step, Iteration& to, const Value& value, bool dead);
  template <class A>
  void deliver(const FramedStep::Edge& edge, Iteration& to, A&& array, Ref<Copies> copies);
  void deliver_dead(const FramedStep::Edge& edge, Iteration& to, bool from_enter);
  void deliver_control(int step, Iteration& to, bool dead);
  void make_ready(int step, Iteration& iteration, bool dead);
  Frame& child_of(Iteration& iteration, int loop);
  Iteration& start_iteration(Frame& frame);
  void retire(Frame& frame);
  void end_frame(Frame& frame);
  void recycle(Iteration& iteration);
  Iteration* new_iteration(int loop);

  const FramedStep& step(int number) const {
    return plan_.steps()[static_cast<std::size_t>(number)];
  }
  const FramedLoop& loop_of(const Frame& frame) const {
    return plan_.loops()[static_cast<std::size_t>(frame.loop)];
  }

  const FramedPlan& plan_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<std::vector<Frame*>> free_frames_;          // by loop
  std::vector<std::vector<Iteration*>> free_iterations_;  // by loop
  std::vector<Ready> ready_;
  std::vector<Array> args_;
  std::vector<Array> results_;
  const StepContext* within_ = nullptr;
  Frame graph_;
  bool shares_ = false;  // gives heavy steps to other threads
  std::exception_ptr error_;
  bool clean_ = false;
  int elsewhere_ = 0;  // steps that others run

  StepRecorder* recorder_ = nullptr;  // null: nothing records
  const RecordedPlan* recorded_ = nullptr;
  std::map<int, Ref<Copies>> constants_;  // by step: those that this call has used

  ThreadContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Done> done_;  // guarded by mutex_
  int queued_ = 0;          // guarded by mutex_: tasks that no thread has begun
  std::map<int, StepRecorder::Time> track_free_;  // guarded by mutex_: ends of streams' last events
  std::atomic<bool> any_done_{false};
  bool driven_ = false;             // guarded by mutex_: a thread is in `drive`
  FunctionRunner::Done when_done_;  // null: the caller waits
  std::vector<Done> collected_;
};

}  // namespace tandem
