#include "tandem/runtime/execute/device_run.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/segment.h"
#include "tandem/graph/collectives.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/placement/list_scheduler.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/transfers.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// Kept alive by what it gave to devices and to the pool. All but the values is guarded by `mutex_`,
// which is recursive since a device may report that work is over from within enqueue.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(const DevicePlan& plan, Plan::Frame& frame, const StepContext& within)
      : plan_(plan),
        schedule_(plan.plan().device_constants().all_there() ? plan.schedule()
                                                             : plan.first_schedule()),
        frame_(frame),
        within_(within),
        context_(thread_context()),
        pieces_(pieces_of(plan, schedule_, within)),
        scheduler_(pieces_.scheduler),
        lost_(schedule_.tasks.tasks.size()),
        released_(schedule_.tasks.tasks.size(), 0),
        readers_(plan.plan().readers().size()),
        streams_(schedule_.tasks.lanes.size()),
        stream_of_(schedule_.tasks.tasks.size(), -1),
        some_do_not_compute_(
            std::any_of(plan.runtime().devices().begin(), plan.runtime().devices().end(),
                        [](const auto& device) { return !device->properties().computes; })),
        recorder_(within.recorder ? within.recorder->shared_from_this() : nullptr) {
    // The caller owns the runtime; what this gave to devices may be over later, on their threads.
    context_.runtime = {std::shared_ptr<void>(), context_.runtime.get()};
    if (some_do_not_compute_) unmaterialized_.assign(frame.values.size(), 0);
    if (recorder_) {
      recorded_ = &recorder_->plan(plan.plan().id(), [&](const auto& each) {
        for (const Step& s : plan.plan().steps()) each(*s.node);
      });
      began_.assign(schedule_.tasks.tasks.size(), 0);
      lane_free_.assign(schedule_.tasks.lanes.size(), 0);
    }
    for (std::size_t s = 0; s < readers_.size(); ++s)
      readers_[s].store(plan.plan().readers()[s], std::memory_order_relaxed);
    for (std::size_t l = 0; l < streams_.size(); ++l)
      streams_[l].assign(static_cast<std::size_t>(schedule_.tasks.lanes[l].width), 0);
  }

  void operator()() {
    assert(!InterOpPool::on_worker());
    issue_all();
    work_on_host(/*to_the_end=*/true);
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.wait(lock, [&] { return helpers_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

  // Returns soon; when every step is over `done` is called.
  void start(std::function<void(std::exception_ptr)> done) {
    done_ = std::move(done);
    works_by_itself_ = plan_.runtime().inter_op_pool().threads() == 1;
    issue_all();
  }

 private:
  void issue_all() {
    locked([&] {
      for (int lane = 0; lane < static_cast<int>(streams_.size()); ++lane) issue(lane);
    });
  }

  struct Less {
    const std::vector<double>& priority;
    bool operator()(int a, int b) const {
      const double p = priority[static_cast<std::size_t>(a)];
      const double q = priority[static_cast<std::size_t>(b)];
      return p != q ? p < q : a > b;
    }
  };

  // Which constant a task uploads; -1: none, it is a step.
  int constant_of(int task) const {
    return std::max(task - static_cast<int>(plan_.plan().steps().size()), -1);
  }
  bool on_host(int task) const { return constant_of(task) < 0 && plan_.on_host(task); }
  const std::vector<int>& after(int task) const {
    return schedule_.tasks.after[static_cast<std::size_t>(task)];
  }

  // Where steps are recorded one by one, or some do not compute, the host is between all of them.
  static const Pieces& pieces_of(const DevicePlan& plan, const DevicePlan::Schedule& schedule,
                                 const StepContext& within) {
    const auto& devices = plan.runtime().devices();
    const bool all_compute = std::all_of(devices.begin(), devices.end(), [](const auto& device) {
      return device->properties().computes;
    });
    return schedule.joined && all_compute && !within.recorder ? *schedule.joined : *schedule.single;
  }

  const Step& step(int s) const { return plan_.plan().steps()[static_cast<std::size_t>(s)]; }

  // Gives a lane what it can take. Call with the lock held.
  void issue(int lane) {
    for (int piece; (piece = scheduler_.issue(lane)) >= 0;) {
      if (at(pieces_.segment, piece) != 0) {
        enqueue_segment(piece);
        continue;
      }
      const int s = at(pieces_.members, piece)[0];
      if (lost_[static_cast<std::size_t>(s)].load(std::memory_order_relaxed)) {
        finish(piece);
      } else if (on_host(s)) {
        host_ready_.push_back(s);
        std::push_heap(host_ready_.begin(), host_ready_.end(), Less{schedule_.priority});
        changed_.notify_one();
        if (host_ready_.size() > (caller_waits_ ? 1 : 0)) call_helper();
      } else {
        enqueue(lane, s);
      }
    }
  }

  // Another thread of the inter-op pool takes part while there is host work. Nothing waits for one
  // that has not begun: the pool's threads may be busy with calls that wait for this one.
  void call_helper() {
    InterOpPool& pool = plan_.runtime().inter_op_pool();
    if (called_ + helpers_ + 1 >= std::max(pool.threads(), done_ ? 2 : 1)) return;
    if (pool.threads() == 1) return;  // the thread that issues does it, when it is out of the lock
    ++called_;
    pool.schedule([self = shared_from_this()] {
      {
        std::lock_guard lock(self->mutex_);
        --self->called_;
        if (self->over_) return;
        ++self->helpers_;
      }
      for (;;) {
        {
          ThreadContextScope scope(self->context_);
          self->work_on_host(/*to_the_end=*/false);
        }
        std::lock_guard lock(self->mutex_);
        if (!self->host_ready_.empty()) continue;  // it came while this thread was on its way out
        --self->helpers_;
        return self->changed_.notify_all();
      }
    });
  }

  void work_on_host(bool to_the_end) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!host_ready_.empty()) {
        std::pop_heap(host_ready_.begin(), host_ready_.end(), Less{schedule_.priority});
        const int s = host_ready_.back();
        host_ready_.pop_back();
        lock.unlock();
        const bool over = run_host_step(s);
        if (over) locked([&] { finish_task(s); });
        lock.lock();
      } else if (!to_the_end || scheduler_.done()) {
        return;
      } else {
        caller_waits_ = true;
        changed_.wait(lock);
        caller_waits_ = false;
      }
    }
  }

  // False if the kernel is asynchronous and will end later.
  bool run_host_step(int s) {
    KernelContext& context = at(frame_.contexts, s);
    context.step_ = &within_;
    try {
      if (within_.cancellation) within_.cancellation->check();
      const ScopedFlushDenormals flush;
      const AllocationScope holder(context.node_name());
      if (some_do_not_compute_ && !calls_functions(step(s).node->kind()) &&
          skip_kernel(context, step(s).node, unmaterialized_inputs(s))) {
        see_as_kernels_do(s);
        return true;
      }
      const KernelDecl& kernel = step(s).kernels->choose(context);
      const bool calls = calls_functions(step(s).node->kind()) && kernel.run_async;
      if (!kernel.run || calls) {
        const StepRecorder::Time begin = recorder_ ? StepRecorder::now() : 0;
        context.begin_outputs();
        kernel.run_async(context, [self = shared_from_this(), s, begin, &context,
                                   name = kernel.name](std::exception_ptr error) {
          if (!error) error = output_failure(context, name);
          ThreadContextScope scope(self->context_);
          if (begin != 0 && !error) self->record_waiting(s, begin);
          self->over(s, std::move(error));
        });
        return false;
      }
      const StepRecorder::Time begin = recorder_ ? StepRecorder::now() : 0;
      run_kernel(kernel, context);
      if (recorder_) {
        recorder_->kernel(recorder_->kernel_track(context.device()), recorded_->of(*step(s).node),
                          begin, StepRecorder::now(), StepRecorder::bytes_of(context));
      }
      see_as_kernels_do(s);
    } catch (...) {
      fail(s, std::current_exception());
    }
    return true;
  }

  void record_waiting(int s, StepRecorder::Time begin) {
    const KernelContext& context = at(frame_.contexts, s);
    recorder_->kernel(recorder_->waiting_track(context.device()), recorded_->of(*step(s).node),
                      begin, StepRecorder::now(), StepRecorder::bytes_of(context));
  }

  // Functions give tokens.
  void see_as_kernels_do(int s) {
    for (int slot : step(s).outputs) {
      Array& value = at(frame_.values, slot);
      value = kernel_view(std::move(value));
    }
    if (!some_do_not_compute_) return;
    KernelContext& context = at(frame_.contexts, s);
    const UnmaterializedInputs inputs = unmaterialized_inputs(s);
    if (!calls_functions(step(s).node->kind())) {
      mark_results(context, inputs);
      return note_unmaterialized(s, inputs);
    }
    // Which results come of which arguments is not known.
    for (int slot : step(s).outputs) {
      const Array& value = at(frame_.values, slot);
      if (inputs.numbers && is_inexact(value.dtype())) mark_unmaterialized(value);
    }
  }

  UnmaterializedInputs unmaterialized_inputs(int s) {
    if (!some_do_not_compute_) return {};
    const KernelContext& context = at(frame_.contexts, s);
    UnmaterializedInputs inputs(context);
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (at(unmaterialized_, at(step(s).inputs, i)) != 0) inputs.add(context, i);
    }
    return inputs;
  }

  // For values in the arenas, whose buffers do not record it.
  void note_unmaterialized(int s, const UnmaterializedInputs& inputs) {
    if (!some_do_not_compute_) return;
    const KernelContext& context = at(frame_.contexts, s);
    for (int i = 0; i < context.num_outputs(); ++i)
      at(unmaterialized_, at(step(s).outputs, i)) =
          comes_unmaterialized(context, i, inputs) ? 1 : 0;
  }

  // A step that ran elsewhere is over.
  void over(int s, std::exception_ptr error) {
    if (error) {
      fail(s, std::move(error));
    } else if (on_host(s)) {
      see_as_kernels_do(s);
    }
    locked([&] {
      if (recorder_ && !on_host(s)) record(s);
      finish_task(s);
    });
  }

  // Calls `body` with the lock held. Constants are uploaded when the outermost such call lets go of
  // it: other runs may wait for them, whose locks are then taken. One thread at a time uploads
  // them, in a loop, as they may be there at once and set others going.
  template <class Body>
  void locked(Body body) {
    bool upload_now = false;
    {
      std::lock_guard lock(mutex_);
      ++depth_;
      body();
      if (--depth_ > 0) return;
      upload_now = !to_upload_.empty();
    }
    if (upload_now) upload_constants();
    if (!done_) return;
    work_without_pool();
    complete();
  }

  // For a run that no thread waits for, where the pool has none.
  void work_without_pool() {
    if (!works_by_itself_) return;
    {
      std::lock_guard lock(mutex_);
      if (works_alone_ || host_ready_.empty()) return;
      works_alone_ = true;
    }
    for (;;) {
      work_on_host(/*to_the_end=*/false);
      std::lock_guard lock(mutex_);
      if (!host_ready_.empty()) continue;
      works_alone_ = false;
      return;
    }
  }

  // Nothing of the plan or the frame is touched once `done_` is called, which may be while other
  // threads are on their way out of `locked`.
  void complete() {
    std::exception_ptr error;
    {
      std::lock_guard lock(mutex_);
      if (over_ || works_alone_ || !scheduler_.done()) return;
      over_ = true;
      error = error_;
    }
    done_(error);
  }

  void upload_constants() {
    {
      std::lock_guard lock(mutex_);
      if (uploading_ || to_upload_.empty()) return;
      uploading_ = true;
    }
    for (;;) {
      std::vector<int> constants;  // in the order in which they were issued
      {
        std::lock_guard lock(mutex_);
        constants.swap(to_upload_);
        uploading_ = !constants.empty();
        if (!uploading_) return;
      }
      for (const int s : constants) {
        try {
          upload(constant_of(s), s);
        } catch (...) {
          over(s, std::current_exception());
        }
      }
    }
  }

  // A kernel from its beginning, a copy from when its lane was free; both to the end that the
  // device reported. Call with the lock held.
  void record(int s) {
    const Task& task = schedule_.tasks.tasks[static_cast<std::size_t>(s)];
    const Lane& lane = schedule_.tasks.lanes[static_cast<std::size_t>(task.lane)];
    const StepRecorder::Time end = StepRecorder::now();
    StepRecorder::Time& free = at(lane_free_, task.lane);
    const StepRecorder::Time begin = std::max(at(began_, s), free);
    free = end;
    if (at(stream_of_, s) < 0 || at(began_, s) == 0) return;
    const auto& devices = plan_.runtime().devices();
    const Device& device = *devices[static_cast<std::size_t>(lane.device)];
    if (const int c = constant_of(s); c >= 0) {
      const DeviceConstants& constants = plan_.plan().device_constants();
      return recorder_->copy({.track = recorder_->stream_track(device, StreamKind::kCopyIn, 0),
                              .plan = recorded_,
                              .name = constants.node(c).name(),
                              .from = devices[0]->name(),
                              .to = device.name(),
                              .bytes = static_cast<double>(constants.value(c).num_bytes()),
                              .begin = begin,
                              .end = end});
    }
    const Node& node = *step(s).node;
    if (lane.kind == Lane::kCompute) {
      const int track = recorder_->stream_track(device, StreamKind::kCompute, at(stream_of_, s));
      return recorder_->kernel(track, recorded_->of(node), lane.width == 1 ? begin : at(began_, s),
                               end, StepRecorder::bytes_of(at(frame_.contexts, s)));
    }
    const bool out = lane.kind == Lane::kCopyOut;
    const int from = plan_.plan().slot_memory(step(s).inputs[0]);
    const int to = plan_.plan().slot_memory(step(s).outputs[0]);
    const Output value = node.inputs()[0];
    const bool made =
        value.node->kind() != NodeKind::kArg && value.node->kind() != NodeKind::kConst;
    recorder_->copy({.track = recorder_->stream_track(
                         device, out ? StreamKind::kCopyOut : StreamKind::kCopyIn, 0),
                     .plan = recorded_,
                     .maker = made ? value.node : nullptr,
                     .output = value.index,
                     .name = value.node->name(),
                     .from = devices[static_cast<std::size_t>(from)]->name(),
                     .to = devices[static_cast<std::size_t>(to)]->name(),
                     .bytes = static_cast<double>(at(frame_.values, step(s).inputs[0]).num_bytes()),
                     .begin = begin,
                     .end = end});
  }

  void enqueue(int lane, int s) {
    const int stream = least_loaded(lane);
    ++at(at(streams_, lane), stream);
    at(stream_of_, s) = stream;
    const auto over = [self = shared_from_this(), s](std::exception_ptr error) {
      ThreadContextScope scope(self->context_);
      self->over(s, std::move(error));
    };
    const Lane& where = schedule_.tasks.lanes[static_cast<std::size_t>(lane)];
    Device& device = *plan_.runtime().devices()[static_cast<std::size_t>(where.device)];
    try {
      if (within_.cancellation) within_.cancellation->check();
      if (constant_of(s) >= 0) {
        to_upload_.push_back(s);
      } else if (where.kind == Lane::kCompute) {
        Work work;
        work.flops = plan_.flops(s);
        work.bytes = plan_.bytes(s);
        work.run = [self = shared_from_this(), s] { self->run_device_step(s); };
        work.done = over;
        device.stream(StreamKind::kCompute, stream).enqueue(std::move(work));
      } else {
        start_copy(device, where.kind, s, over);
      }
    } catch (...) {
      over(std::current_exception());
    }
  }

  // ---- Segments ----

  Device& device_of_segment(int piece) {
    const int s = at(pieces_.members, piece)[0];
    return *plan_.runtime().devices()[static_cast<std::size_t>(step(s).device)];
  }

  void enqueue_segment(int piece) {
    const auto over = [self = shared_from_this(), piece](std::exception_ptr error) {
      ThreadContextScope scope(self->context_);
      self->segment_over(piece, std::move(error));
    };
    try {
      if (within_.cancellation) within_.cancellation->check();
      Work work;
      for (const int s : at(pieces_.members, piece)) {
        work.flops += plan_.flops(s);
        work.bytes += plan_.bytes(s);
      }
      work.run = [self = shared_from_this(), piece] { self->run_segment(piece); };
      work.done = over;
      segment_stream(device_of_segment(piece))->enqueue_segment(std::move(work), number_of(piece));
    } catch (...) {
      over(std::current_exception());
    }
  }

  // The calls of a plan with one frame are alike.
  std::uint64_t number_of(int piece) const {
    const std::uint64_t first = &schedule_ == &plan_.schedule() ? 0 : 1;
    std::uint64_t number = reinterpret_cast<std::uintptr_t>(&frame_);
    for (const std::uint64_t part : {plan_.plan().id(), static_cast<std::uint64_t>(piece), first})
      number = (number ^ part) * 0x9e3779b97f4a7c15u;
    return number | 1;
  }

  // On a thread of the device: launches all. What fails here leaves out what needs it, as ever.
  // Steps that are alike may become one launch if none of them writes where another reads: what
  // they read keeps its memory until the last of them has got some for its results.
  void run_segment(int piece) {
    std::vector<int> kept;  // steps
    int kind = -1;
    const auto release_kept = [&] {
      for (const int s : kept) release_inputs(s);
      kept.clear();
    };
    for (const int s : at(pieces_.members, piece)) {
      const int before = std::exchange(kind, pieces_.alike.empty() ? -1 : at(pieces_.alike, s));
      if (kind != before) release_kept();
      if (at(lost_, s).load(std::memory_order_acquire)) {
        lose_after(s);
        continue;
      }
      try {
        if (plan_.is_small_copy(s)) {
          add_copy(piece, s);
        } else {
          run_device_step(s);
          at(released_, s) = 1;  // what was launched comes before whatever takes the memory
          if (kind >= 0 && !step(s).outputs.empty()) {
            kept.push_back(s);
          } else {
            release_inputs(s);
          }
        }
      } catch (...) {
        fail(s, std::current_exception());
      }
    }
    release_kept();
  }

  void add_copy(int piece, int s) {
    const Array& from = at(frame_.values, step(s).inputs[0]);
    Array& to = at(frame_.values, step(s).outputs[0]);
    if (frame_.write_host_read(plan_.plan(), s, from, to)) return;
    const AllocationScope holder(step(s).node->name());
    make_target(device_of_segment(piece), step(s).node->kind() == NodeKind::kCopyToHost, from, to,
                s);
    if (from.num_bytes() != 0)
      segment_stream(device_of_segment(piece))->add_copy(transfer(from, to));
  }

  void segment_over(int piece, const std::exception_ptr& error) {
    if (error) fail_segment(piece, error);
    locked([&] { finish(piece); });
  }

  // Some of it was not launched, or all may be lost: none of it counts.
  void fail_segment(int piece, const std::exception_ptr& error) {
    const std::vector<int>& members = at(pieces_.members, piece);
    if (members.size() == 1) return fail(members[0], error);
    set_error(with_line(error, cat("in a segment of ", members.size(), " steps, node '",
                                   step(members.front()).node->name(), "' to node '",
                                   step(members.back()).node->name(), "'")));
    for (const int s : members) {
      at(lost_, s).store(true, std::memory_order_release);
      lose_after(s);
    }
  }

  void lose_after(int s) {
    for (const int next : after(s)) at(lost_, next).store(true, std::memory_order_release);
  }

  int least_loaded(int lane) const {
    const auto& loads = streams_[static_cast<std::size_t>(lane)];
    int best = 0;
    for (int i = 1; i < static_cast<int>(loads.size()); ++i) {
      if (loads[static_cast<std::size_t>(i)] < loads[static_cast<std::size_t>(best)]) best = i;
    }
    return best;
  }

  // On a thread of the device. What it waits for may have failed after it was issued behind it.
  void run_device_step(int s) {
    if (lost_[static_cast<std::size_t>(s)].load(std::memory_order_acquire)) return;
    ThreadContextScope scope(context_);
    KernelContext& context = at(frame_.contexts, s);
    context.step_ = &within_;
    if (within_.cancellation) within_.cancellation->check();
    if (recorder_) at(began_, s) = StepRecorder::now();
    const UnmaterializedInputs inputs = unmaterialized_inputs(s);
    run_device_kernel(*step(s).kernels, context, step(s).node, inputs);
    note_unmaterialized(s, inputs);
  }

  template <class Over>
  void start_copy(Device& device, Lane::Kind kind, int s, const Over& over) {
    const Array& from = at(frame_.values, step(s).inputs[0]);
    Array& to = at(frame_.values, step(s).outputs[0]);
    if (const Device* const source = device_of(from)) check_not_lost(*source);
    if (frame_.write_host_read(plan_.plan(), s, from, to)) return over(nullptr);
    const AllocationScope holder(step(s).node->name());
    make_target(device, kind == Lane::kCopyOut, from, to, s);
    if (some_do_not_compute_) {
      const std::uint8_t unmaterialized = at(unmaterialized_, step(s).inputs[0]);
      at(unmaterialized_, step(s).outputs[0]) = unmaterialized;
      if (unmaterialized || !is_computed(from)) mark_unmaterialized(to);
    }
    if (from.num_bytes() == 0) return over(nullptr);
    if (recorder_) at(began_, s) = StepRecorder::now();
    start_transfer(from, to, over);
  }

  // Memory for what a copy makes, unless the plan has some.
  void make_target(Device& device, bool on_host, const Array& from, Array& to, int s) {
    if ((step(s).planned_outputs & 1) != 0 && to.shape() == from.shape()) return;
    if (on_host) {
      to = Array(from.dtype(), from.shape());
    } else {
      to = kernel_view(allocate_on(device, from.dtype(), from.shape()));
    }
  }

  // Another call may be uploading it; if that one is cancelled this one goes on.
  void upload(int constant, int s, int tries = 3) {
    if (recorder_) at(began_, s) = StepRecorder::now();
    plan_.plan().device_constants().upload(
        constant, [self = shared_from_this(), constant, s, tries](std::exception_ptr error) {
          ThreadContextScope scope(self->context_);
          const Cancellation* const own = self->within_.cancellation;
          const bool mine = own && own->cancelled();
          if (error && !mine && tries > 1 && code_of(error) == Code::kCancelled)
            return self->upload(constant, s, tries - 1);
          self->over(s, std::move(error));
        });
  }

  void fail(int s, std::exception_ptr error) {
    if (constant_of(s) < 0) {
      KernelContext& context = at(frame_.contexts, s);
      context.step_ = &within_;  // it may not have begun
      error = node_failure(*step(s).node, context, error);
    }
    lost_[static_cast<std::size_t>(s)].store(true, std::memory_order_release);
    lose_after(s);  // those that were issued behind it on its stream must not run
    set_error(std::move(error));
  }

  void set_error(std::exception_ptr error) {
    {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    // Other parts, and members of groups, wait for what does not come any more.
    if (within_.collectives) within_.collectives->start_abort(error);
    if (within_.rendezvous) within_.rendezvous->start_abort(std::move(error));
  }

  // Call with the lock held. What a step that is over sets going may be over at once, and so on
  // for as long as the function is: a list, not a recursion.
  void finish(int piece) {
    finished_.push_back(piece);
    if (following_up_) return;
    following_up_ = true;
    while (!finished_.empty()) {
      const int next = finished_.back();
      finished_.pop_back();
      follow_up(next);
    }
    following_up_ = false;
    if (scheduler_.done()) changed_.notify_all();
  }

  void finish_task(int s) { finish(at(pieces_.of, s)); }

  void follow_up(int piece) {
    for (const int s : at(pieces_.members, piece)) {
      const int lane = schedule_.tasks.tasks[static_cast<std::size_t>(s)].lane;
      const bool lost = lost_[static_cast<std::size_t>(s)].load(std::memory_order_relaxed);
      if (at(stream_of_, s) >= 0) --at(at(streams_, lane), at(stream_of_, s));
      if (constant_of(s) < 0 && at(released_, s) == 0) release_inputs(s);
      if (lost) lose_after(s);
    }
    std::vector<int> lanes;
    scheduler_.finish(piece, lanes);
    for (int l : lanes) issue(l);
  }

  void release_inputs(int s) {
    for (int slot : step(s).inputs) {
      auto& readers = at(readers_, slot);
      if (at(plan_.plan().readers(), slot) != 0 &&
          readers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        at(frame_.values, slot) = Array();
      }
    }
  }

  const DevicePlan& plan_;
  const DevicePlan::Schedule& schedule_;
  Plan::Frame& frame_;
  const StepContext& within_;
  ThreadContext context_;
  const Pieces& pieces_;

  std::recursive_mutex mutex_;
  int depth_ = 0;           // of `locked`
  bool uploading_ = false;  // a thread takes what is in to_upload_
  std::condition_variable_any changed_;
  ListScheduler scheduler_;
  std::vector<std::atomic<bool>> lost_;       // by step
  std::vector<std::uint8_t> released_;        // by step: its inputs, in a segment
  std::vector<std::atomic<int>> readers_;     // by slot
  std::vector<std::vector<int>> streams_;     // by lane and stream: work that is not over
  std::vector<int> stream_of_;                // by step; -1: none
  const bool some_do_not_compute_;            // devices of the runtime
  std::vector<std::uint8_t> unmaterialized_;  // by slot: of values in the arenas
  std::vector<int> host_ready_;               // a heap: who has most ahead goes first
  std::vector<int> to_upload_;                // constants, by task
  std::vector<int> finished_;  // pieces that are over and have not yet been followed up
  bool following_up_ = false;
  bool caller_waits_ = false;
  bool over_ = false;
  int called_ = 0;                                // helpers that have not begun
  int helpers_ = 0;                               // that have
  bool works_by_itself_ = false;                  // no thread waits, and the pool has none
  bool works_alone_ = false;                      // a thread is in work_without_pool
  std::function<void(std::exception_ptr)> done_;  // null: the caller waits
  std::exception_ptr error_;

  const std::shared_ptr<StepRecorder> recorder_;  // null: nothing records
  const RecordedPlan* recorded_ = nullptr;
  std::vector<StepRecorder::Time> began_;      // by step
  std::vector<StepRecorder::Time> lane_free_;  // by lane: when its last task was over
};

}  // namespace

void run_on_devices(const DevicePlan& plan, Plan::Frame& frame, const StepContext& within) {
  (*std::make_shared<Run>(plan, frame, within))();
}

void run_on_devices_async(const DevicePlan& plan, Plan::Frame& frame, const StepContext& within,
                          std::function<void(std::exception_ptr)> done) {
  if (plan.plan().steps().empty() && plan.first_schedule().tasks.tasks.empty())
    return done(nullptr);
  std::make_shared<Run>(plan, frame, within)->start(std::move(done));
}

}  // namespace tandem
