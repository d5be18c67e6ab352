#include "tandem/runtime/execute/framed_run.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/graph/collectives.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// Copied from memory that was written long ago: a fresh Array's parts would be written one by one
// and read together at once, which the processor can't forward from its store buffer.
void clear(Array& slot) {
  static const NeverDestroyed<Array> none;
  slot = *none;
}

}  // namespace

FramedRun::FramedRun(const FramedPlan& plan)
    : plan_(plan),
      free_frames_(plan.loops().size()),
      free_iterations_(plan.loops().size()),
      results_(plan.num_results()) {}

FramedRun::~FramedRun() = default;

std::vector<Array> FramedRun::operator()(std::vector<Array> args, const StepContext& within) {
  shares_ = plan_.pool().threads() > 1 && !InterOpPool::on_worker();
  begin(std::move(args), within);
  for (;;) {
    run_ready();
    if (elsewhere_ == 0) return finish_run();
    wait_for_others();
  }
}

void FramedRun::start(std::vector<Array> args, const StepContext& within,
                      FunctionRunner::Done done) {
  shares_ = plan_.pool().threads() > 1;
  begin(std::move(args), within);
  when_done_ = std::move(done);
  driven_ = true;
  drive();
}

// Until nothing is ready here and none of what others run has ended. The run may be gone then.
void FramedRun::drive() {
  for (;;) {
    run_ready();
    if (elsewhere_ == 0) break;
    {
      std::lock_guard lock(mutex_);
      if (done_.empty()) {
        driven_ = false;
        return;
      }
    }
    collect();
  }
  std::vector<Array> results;
  std::exception_ptr error;
  try {
    results = finish_run();
  } catch (...) {
    error = std::current_exception();
  }
  const FunctionRunner::Done done = std::move(when_done_);
  when_done_ = nullptr;
  done(error, std::move(results));
}

void FramedRun::begin(std::vector<Array> args, const StepContext& within) {
  args_ = std::move(args);
  within_ = &within;
  context_ = thread_context();
  clean_ = false;
  recorder_ = within.recorder;
  if (recorder_) {
    recorded_ = &recorder_->plan(plan_.id(), [&](const auto& note) {
      for (const FramedStep& s : plan_.steps()) {
        if (s.kernels) note(*s.node);
      }
    });
  }
  graph_ = Frame();
  Iteration& root = start_iteration(graph_);
  // Until everything has been started the graph itself must not seem to be over.
  ++root.active;
  const FramedLoop& loop = plan_.loops()[0];
  for (std::size_t i = 0; i < loop.steps.size(); ++i) {
    const bool merge = step(loop.steps[i]).kind == NodeKind::kMerge;
    if (loop.waiting[i] == 0 && !merge) make_ready(loop.steps[i], root, false);
  }
  // Ready steps are taken from the end: make them run in the order in which they stand.
  std::reverse(ready_.begin(), ready_.end());
}

void FramedRun::run_ready() {
  while (!ready_.empty()) {
    const Ready entry = ready_.back();
    ready_.pop_back();
    process(entry);
    if (any_done_.load(std::memory_order_acquire)) collect();
  }
}

std::vector<Array> FramedRun::finish_run() {
  args_.clear();
  constants_.clear();
  track_free_.clear();
  if (error_) std::rethrow_exception(error_);
  std::vector<Array> results(results_.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!results_[r].valid()) {
      throw InvalidArgumentError(cat("Retval[", r,
                                     "] does not have value: it comes from a branch "
                                     "that was not taken."));
    }
    results[r] = std::move(results_[r]);
    results_[r] = Array();
  }
  --graph_.live.front()->active;
  retire(graph_);
  recorder_ = nullptr;
  return results;
}

// ---- Steps ----

void FramedRun::process(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  switch (s.kind) {
    case NodeKind::kEnter: return run_enter(entry);
    case NodeKind::kExit: return run_exit(entry);
    case NodeKind::kNextIteration: return run_next(entry);
    case NodeKind::kMerge: return run_merge(entry);
    default: break;
  }
  if (entry.dead && !s.runs_when_dead) {
    clear_inputs(s, iteration);
    send_outputs(s, iteration, true);
    return end(entry);
  }
  switch (s.kind) {
    case NodeKind::kSwitch: return run_switch(entry);
    case NodeKind::kConst:
      at(iteration.outputs, s.first_output) = s.constant;
      if (!iteration.output_copies.empty()) {
        Ref<Copies>& copies = constants_[entry.step];
        if (!copies) copies = make_ref<Copies>(*s.node, 0);
        at(iteration.output_copies, s.first_output) = copies;
      }
      break;
    case NodeKind::kArg: at(iteration.outputs, s.first_output) = std::move(at(args_, s.arg)); break;
    case NodeKind::kLoopCond:
      forward(s, 0, 0, iteration);
      clear_inputs(s, iteration);
      break;
    default: return run_kernel(entry);
  }
  send_outputs(s, iteration, false);
  end(entry);
}

void FramedRun::run_kernel(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  KernelContext& context = at(iteration.contexts, s.local);
  context.step_ = within_;
  context.planned_outputs_ = 0;
  // Each slot refers to its value by itself, so the reference count shows whether others need it.
  context.owned_inputs_ = ~std::uint64_t{0};
  context.frame_iteration_ = {iteration.frame->id, iteration.number};
  if (is_transfer(s.kind)) {
    context.input_dead_ = entry.dead;
    context.may_be_dead_ = true;
    context.outputs_dead_ = false;
  }
  try {
    if (within_->cancellation) within_->cancellation->check();
    if (plan_.several_memories() && !entry.dead && !bring_inputs(entry)) return;
    if (s.accelerator && !only_asynchronous(*s.kernels)) return run_on_device(entry);
    const KernelDecl& kernel = s.kernels->choose(context);
    if (!kernel.run || (s.asynchronous && kernel.run_async)) {
      ++elsewhere_;
      try {
        const StepRecorder::Time start = recorder_ ? StepRecorder::now() : 0;
        context.begin_outputs();
        kernel.run_async(context, [this, entry, &s, &context, start,
                                   name = kernel.name](std::exception_ptr error) {
          if (!error) error = output_failure(context, name);
          if (recorder_ && !error)
            record(s, context, start, recorder_->waiting_track(context.device()));
          if (s.accelerator && !error) end_device_kernel(context, UnmaterializedInputs(context));
          if (error) error = node_failure(*s.node, context, std::move(error));
          report({.entry = entry, .error = std::move(error)});
        });
      } catch (...) {
        --elsewhere_;
        throw;
      }
      return;
    }
    if (shares_ && !ready_.empty() && plan_.worth_sharing(entry.step))
      return run_elsewhere(entry, kernel);
    run_here(entry, kernel, context);
  } catch (...) {
    return finish(entry, node_failure(*s.node, context));
  }
  finish(entry, nullptr);
}

void FramedRun::run_on_device(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  KernelContext& context = at(entry.iteration->contexts, s.local);
  const KernelWork cost = work_of(*s.node, *s.accelerator);
  Work work;
  work.flops = cost.flops;
  work.bytes = cost.bytes;
  const auto began = recorder_ ? std::make_shared<StepRecorder::Time>(0) : nullptr;
  work.run = [this, &s, &context, began] {
    ThreadContextScope scope(context_);
    if (began) *began = StepRecorder::now();
    run_device_kernel(*s.kernels, context, s.node, UnmaterializedInputs(context));
  };
  work.done = [this, entry, &s, &context, began](std::exception_ptr error) {
    if (began && !error) record_on_device(s, context, *began);
    if (error) error = node_failure(*s.node, context, std::move(error));
    report({.entry = entry, .error = std::move(error)});
  };
  ++elsewhere_;
  try {
    s.accelerator->stream(StreamKind::kCompute).enqueue(std::move(work));
  } catch (...) {
    --elsewhere_;
    throw;
  }
}

void FramedRun::record(const FramedStep& step, const KernelContext& context,
                       StepRecorder::Time start, int track) {
  recorder_->kernel(track, recorded_->of(*step.node), start, StepRecorder::now(),
                    StepRecorder::bytes_of(context));
}

void FramedRun::run_here(const Ready& entry, const KernelDecl& kernel, KernelContext& context) {
  if (recorder_) [[unlikely]] {
    const StepRecorder::Time start = StepRecorder::now();
    tandem::run_kernel(kernel, context);
    return record(step(entry.step), context, start, recorder_->kernel_track(context.device()));
  }
  if (!shares_ || !plan_.wants_time(entry.step)) return tandem::run_kernel(kernel, context);
  const std::uint64_t uses = IntraOpPool::uses_by_this_thread();
  const auto start = std::chrono::steady_clock::now();
  tandem::run_kernel(kernel, context);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  plan_.add_time(entry.step, seconds, IntraOpPool::uses_by_this_thread() != uses);
}

void FramedRun::run_elsewhere(const Ready& entry, const KernelDecl& kernel) {
  ++elsewhere_;
  {
    std::lock_guard lock(mutex_);
    ++queued_;
  }
  plan_.pool().schedule([this, entry, &kernel] {
    {
      std::lock_guard lock(mutex_);
      --queued_;
    }
    ThreadContextScope scope(context_);
    const FramedStep& s = step(entry.step);
    KernelContext& context = at(entry.iteration->contexts, s.local);
    std::exception_ptr error;
    try {
      const StepRecorder::Time start = recorder_ ? StepRecorder::now() : 0;
      tandem::run_kernel(kernel, context);
      if (recorder_) record(s, context, start, recorder_->kernel_track(context.device()));
    } catch (...) {
      error = node_failure(*s.node, context);
    }
    report({.entry = entry, .error = std::move(error)});
  });
}

// Called by the thread that ran the step. Once the lock is free the run may be gone.
void FramedRun::report(Done done) {
  {
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
    any_done_.store(true, std::memory_order_release);
    if (!when_done_) return changed_.notify_all();
    if (driven_) return;
    driven_ = true;
  }
  const ThreadContextScope scope(context_);
  drive();
}

// Takes up what others have finished; waits for something if nothing is ready here.
void FramedRun::wait_for_others() {
  for (bool helped = true;;) {
    {
      std::unique_lock lock(mutex_);
      if (!helped && done_.empty() && queued_ == 0) {
        assert(!InterOpPool::on_worker());
        changed_.wait(lock, [&] { return !done_.empty(); });
      }
      if (!done_.empty()) break;
    }
    helped = plan_.pool().help();
  }
  collect();
}

void FramedRun::collect() {
  {
    std::lock_guard lock(mutex_);
    collected_.swap(done_);
    any_done_.store(false, std::memory_order_relaxed);
  }
  for (Done& d : collected_) {
    --elsewhere_;
    d.copies = nullptr;
    if (d.arrival) {
      arrived(*d.arrival, std::move(d.error));
    } else {
      finish(d.entry, std::move(d.error));
    }
  }
  collected_.clear();
}

void FramedRun::finish(const Ready& entry, std::exception_ptr error) {
  const FramedStep& s = step(entry.step);
  const bool failed = error != nullptr;
  if (failed) fail(*entry.iteration->frame, std::move(error));
  clear_inputs(s, *entry.iteration);
  const bool dead =
      is_transfer(s.kind) && (entry.dead || at(entry.iteration->contexts, s.local).outputs_dead_);
  send_outputs(s, *entry.iteration, failed || dead);
  end(entry);
}

void FramedRun::fail(Frame& frame, std::exception_ptr error) {
  if (!error_) error_ = error;
  for (Frame* f = &frame; f; f = f->parent) f->failed = true;
  // Other parts, and members of groups, wait for what does not come any more.
  if (within_->collectives) within_->collectives->start_abort(error);
  if (within_->rendezvous) within_->rendezvous->start_abort(std::move(error));
}

void FramedRun::run_switch(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  const Array& pred = at(iteration.inputs, s.first_input + 1);
  try {
    if (pred.rank() != 0) {
      throw InvalidArgumentError(
          cat("The second input must be a scalar, but it has shape ", pred.shape(), "."));
    }
    if (plan_.several_memories() && !bring_inputs(entry)) return;
  } catch (...) {
    KernelContext& context = at(iteration.contexts, s.local);
    context.step_ = within_;  // a Switch has no kernel that sets it
    return finish(entry, node_failure(*s.node, context));
  }
  const int taken = *pred.data<bool>() ? 1 : 0;
  forward(s, 0, taken, iteration);
  clear_inputs(s, iteration);
  send_outputs(s, iteration, false);
  end(entry);
}

void FramedRun::run_merge(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  for (int i = 0; i < s.num_inputs && !entry.dead; ++i) {
    if (!at(iteration.inputs, s.first_input + i).valid()) continue;
    forward(s, i, 0, iteration);
    at(iteration.outputs, s.first_output + 1) = plan_.index(i);
    break;
  }
  clear_inputs(s, iteration);
  send_outputs(s, iteration, entry.dead);
  end(entry);
}

void FramedRun::run_enter(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  Frame& child = child_of(iteration, s.enters);
  Value value;
  if (!entry.dead) value = take_input(s, 0, iteration);
  clear_inputs(s, iteration);
  if (s.is_constant) {
    for (Iteration* live : child.live) send_copy(s, *live, value, entry.dead);
    child.constants.push_back({entry.step, std::move(value), entry.dead});
  } else {
    send(s, *child.live.front(), std::move(value), entry.dead);
  }
  --child.pending_enters;
  retire(child);
  end(entry);
}

// Deadness ends here: in every iteration but the last the value enters the next iteration instead.
// A loop that ends without a live exit reports it in end_frame.
void FramedRun::run_exit(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  Frame& frame = *iteration.frame;
  Value value;
  if (!entry.dead) value = take_input(s, 0, iteration);
  clear_inputs(s, iteration);
  if (!entry.dead) {
    const auto& exits = loop_of(frame).exits;
    const auto found = std::find(exits.begin(), exits.end(), entry.step);
    frame.exited[static_cast<std::size_t>(found - exits.begin())] = 1;
    send(s, *frame.parent_iteration, std::move(value), false);
  }
  end(entry);
}

void FramedRun::run_next(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  Iteration& iteration = *entry.iteration;
  Frame& frame = *iteration.frame;
  Value value;
  if (!entry.dead) value = take_input(s, 0, iteration);
  clear_inputs(s, iteration);
  if (!entry.dead && !frame.failed) {
    if (frame.live.back() != &iteration) {
      const auto here = std::find(frame.live.begin(), frame.live.end(), &iteration);
      send(s, **(here + 1), std::move(value), false);
    } else if (static_cast<int>(frame.live.size()) < loop_of(frame).parallel_iterations) {
      send(s, start_iteration(frame), std::move(value), false);
    } else {
      frame.next.push_back({entry.step, std::move(value), false});
    }
  }
  end(entry);
}

// ---- Values on their way ----

// The slot counts as taken until clear_inputs.
FramedRun::Value FramedRun::take_input(const FramedStep& s, int i, Iteration& iteration) {
  Value value{std::move(at(iteration.inputs, s.first_input + i))};
  if (!iteration.input_copies.empty())
    value.copies = std::move(at(iteration.input_copies, s.first_input + i));
  return value;
}

// Finishes a step whose output is one of its inputs.
void FramedRun::forward(const FramedStep& s, int input, int output, Iteration& iteration) {
  at(iteration.outputs, s.first_output + output) =
      std::move(at(iteration.inputs, s.first_input + input));
  if (!iteration.input_copies.empty()) {
    at(iteration.output_copies, s.first_output + output) =
        std::move(at(iteration.input_copies, s.first_input + input));
  }
}

void FramedRun::clear_inputs(const FramedStep& s, Iteration& iteration) {
  for (int i = 0; i < s.num_inputs; ++i) {
    if (!iteration.input_copies.empty()) at(iteration.input_copies, s.first_input + i) = nullptr;
    Array& slot = at(iteration.inputs, s.first_input + i);
    if (!slot.valid()) continue;  // a slot whose value was moved away still counts as valid
    clear(slot);
    --iteration.held;
  }
}

void FramedRun::end(const Ready& entry) {
  if (--entry.iteration->active == 0) retire(*entry.iteration->frame);
}

// Hands each output to those who need it; the last one gets the array itself.
void FramedRun::send_outputs(const FramedStep& s, Iteration& from, bool dead) {
  for (std::size_t e = 0; e < s.edges.size(); ++e) {
    const FramedStep::Edge& edge = s.edges[e];
    Array& output = at(from.outputs, s.first_output + edge.output);
    if (dead || !output.valid()) {
      deliver_dead(edge, from, false);
      continue;
    }
    const bool last = e + 1 == s.edges.size() || s.edges[e + 1].output != edge.output;
    Ref<Copies> copies;
    if (!from.output_copies.empty()) {
      Ref<Copies>& own = at(from.output_copies, s.first_output + edge.output);
      if (!own) own = make_ref<Copies>(*s.node, edge.output);
      copies = last ? std::move(own) : own;
    }
    if (last) {
      deliver(edge, from, std::move(output), std::move(copies));
    } else {
      deliver(edge, from, std::as_const(output), std::move(copies));
    }
  }
  for (int o = 0; o < s.num_outputs; ++o) {
    Array& output = at(from.outputs, s.first_output + o);
    if (output.valid()) clear(output);
    if (!from.output_copies.empty()) at(from.output_copies, s.first_output + o) = nullptr;
  }
  for (int waiting : s.control_edges) deliver_control(waiting, from, dead);
}

// The one output of an Enter, Exit or NextIteration, into another iteration.
void FramedRun::send(const FramedStep& s, Iteration& to, Value&& value, bool dead) {
  for (std::size_t e = 0; e < s.edges.size(); ++e) {
    if (dead) {
      deliver_dead(s.edges[e], to, s.kind == NodeKind::kEnter);
    } else if (e + 1 == s.edges.size()) {
      deliver(s.edges[e], to, std::move(value.array), std::move(value.copies));
    } else {
      deliver(s.edges[e], to, std::as_const(value.array), value.copies);
    }
  }
  for (int waiting : s.control_edges) deliver_control(waiting, to, dead);
}

// Sends a value that others need as well.
void FramedRun::send_copy(const FramedStep& s, Iteration& to, const Value& value, bool dead) {
  for (const FramedStep::Edge& edge : s.edges) {
    if (dead) {
      deliver_dead(edge, to, s.kind == NodeKind::kEnter);
    } else {
      deliver(edge, to, value.array, value.copies);
    }
  }
  for (int waiting : s.control_edges) deliver_control(waiting, to, dead);
}

template <class A>
void FramedRun::deliver(const FramedStep::Edge& edge, Iteration& to, A&& array,
                        Ref<Copies> copies) {
  if (edge.step < 0) {
    at(results_, edge.input) = std::forward<A>(array);
    return;
  }
  const FramedStep& s = step(edge.step);
  const bool merge = s.kind == NodeKind::kMerge;
  if (merge && at(to.arrived, s.local)) return;  // only the first live value counts
  at(to.inputs, s.first_input + edge.input) = std::forward<A>(array);
  if (!to.input_copies.empty()) at(to.input_copies, s.first_input + edge.input) = std::move(copies);
  ++to.held;
  if (merge) {
    at(to.arrived, s.local) = 1;
    if (at(to.waiting, s.local) == 0) make_ready(edge.step, to, false);
  } else if (--at(to.waiting, s.local) == 0) {
    make_ready(edge.step, to, at(to.dead, s.local) > 0);
  }
}

void FramedRun::deliver_dead(const FramedStep::Edge& edge, Iteration& to, bool from_enter) {
  if (edge.step < 0) return;
  const FramedStep& s = step(edge.step);
  int& dead = at(to.dead, s.local);
  if (s.kind != NodeKind::kMerge) {
    ++dead;
    if (--at(to.waiting, s.local) == 0) make_ready(edge.step, to, true);
    return;
  }
  if (at(to.arrived, s.local)) return;
  // A loop entered by a dead value does not wait for its next iteration.
  dead = from_enter ? s.num_inputs : dead + 1;
  if (dead == s.num_inputs && at(to.waiting, s.local) == 0) make_ready(edge.step, to, true);
}

void FramedRun::deliver_control(int number, Iteration& to, bool dead) {
  const FramedStep& s = step(number);
  const int left = --at(to.waiting, s.local);
  if (s.kind != NodeKind::kMerge) {
    if (dead) ++at(to.dead, s.local);
    if (left == 0) make_ready(number, to, at(to.dead, s.local) > 0);
    return;
  }
  if (left != 0) return;
  if (at(to.arrived, s.local)) {
    make_ready(number, to, false);
  } else if (at(to.dead, s.local) == s.num_inputs) {
    make_ready(number, to, true);
  }
}

void FramedRun::make_ready(int number, Iteration& iteration, bool dead) {
  ++iteration.active;
  ready_.push_back({&iteration, number, dead});
}

// ---- Frames and iterations ----

FramedRun::Frame& FramedRun::child_of(Iteration& iteration, int number) {
  const FramedLoop& loop = at(plan_.loops(), number);
  Frame*& child = at(iteration.children, loop.child);
  if (child) return *child;
  auto& free = at(free_frames_, number);
  if (free.empty()) {
    frames_.push_back(std::make_unique<Frame>());
    child = frames_.back().get();
  } else {
    child = free.back();
    free.pop_back();
  }
  child->loop = number;
  child->parent = iteration.frame;
  child->parent_iteration = &iteration;
  child->pending_enters = loop.num_enters;
  child->exited.assign(loop.exits.size(), 0);
  child->failed = false;
  child->next_number = 0;
  if (plan_.has_transfers())
    child->id = child_frame({iteration.frame->id, iteration.number}, loop.name);
  ++iteration.active;
  start_iteration(*child);
  return *child;
}

FramedRun::Iteration& FramedRun::start_iteration(Frame& frame) {
  auto& free = at(free_iterations_, frame.loop);
  Iteration* iteration = nullptr;
  if (free.empty()) {
    iteration = new_iteration(frame.loop);
  } else {
    iteration = free.back();
    free.pop_back();
  }
  iteration->frame = &frame;
  iteration->number = frame.next_number++;
  iteration->waiting = loop_of(frame).waiting;
  std::fill(iteration->dead.begin(), iteration->dead.end(), 0);
  std::fill(iteration->arrived.begin(), iteration->arrived.end(), 0);
  frame.live.push_back(iteration);
  for (const Handed& constant : frame.constants)
    send_copy(step(constant.step), *iteration, constant.value, constant.dead);
  return *iteration;
}

// Ends the iterations that are over, oldest first, and the frame after its last one. An iteration
// gets values only from the one before it and through Enters.
void FramedRun::retire(Frame& frame) {
  while (frame.pending_enters == 0 && frame.live.front()->active == 0) {
    Iteration* oldest = frame.live.front();
    const bool last = frame.live.size() == 1;
    if (last && (frame.next.empty() || frame.failed)) return end_frame(frame);
    frame.live.erase(frame.live.begin());
    recycle(*oldest);
    if (frame.next.empty() || frame.failed) continue;
    // What waited for this place; sending never adds to it.
    Iteration& started = start_iteration(frame);
    for (Handed& handed : frame.next)
      send(step(handed.step), started, std::move(handed.value), false);
    frame.next.clear();
  }
}

void FramedRun::recycle(Iteration& iteration) {
  if (iteration.held > 0) {
    std::fill(iteration.inputs.begin(), iteration.inputs.end(), Array());
    std::fill(iteration.input_copies.begin(), iteration.input_copies.end(), Ref<Copies>());
    iteration.held = 0;
  }
  at(free_iterations_, iteration.frame->loop).push_back(&iteration);
}

void FramedRun::end_frame(Frame& frame) {
  const FramedLoop& loop = loop_of(frame);
  recycle(*frame.live.front());
  frame.live.clear();
  frame.constants.clear();
  frame.next.clear();
  if (!frame.parent) {
    clean_ = true;
    return;
  }
  Iteration& outer = *frame.parent_iteration;
  at(outer.children, loop.child) = nullptr;
  for (std::size_t e = 0; e < loop.exits.size(); ++e)
    if (!frame.exited[e]) send(step(loop.exits[e]), outer, Value(), true);
  at(free_frames_, frame.loop).push_back(&frame);
  if (--outer.active == 0) retire(*outer.frame);
}

FramedRun::Iteration* FramedRun::new_iteration(int number) {
  const FramedLoop& loop = at(plan_.loops(), number);
  iterations_.push_back(std::make_unique<Iteration>());
  Iteration& it = *iterations_.back();
  it.dead.resize(loop.steps.size());
  it.arrived.resize(loop.steps.size());
  it.inputs.resize(static_cast<std::size_t>(loop.num_inputs));
  it.outputs.resize(static_cast<std::size_t>(loop.num_outputs));
  if (plan_.several_memories()) {
    it.input_copies.resize(it.inputs.size());
    it.output_copies.resize(it.outputs.size());
    it.arriving.resize(loop.steps.size());
  }
  it.children.resize(static_cast<std::size_t>(loop.num_children));
  for (Array& a : it.inputs) it.input_pointers.push_back(&a);
  for (Array& a : it.outputs) it.output_pointers.push_back(&a);
  it.contexts.resize(loop.steps.size());
  for (std::size_t i = 0; i < loop.steps.size(); ++i) {
    const FramedStep& s = step(loop.steps[i]);
    KernelContext& context = it.contexts[i];
    context.op_ = &s.node->op();
    context.attrs_ = &s.node->attrs();
    context.node_name_ = s.node->name();
    context.inputs_ = it.input_pointers.data() + s.first_input;
    context.outputs_ = it.output_pointers.data() + s.first_output;
    context.output_dtypes_ = s.node->output_dtypes().data();
    context.num_inputs_ = s.num_inputs;
    context.set_num_outputs(s.num_outputs);
    context.services_ = s.services;
    context.host_outputs_ = s.host_outputs;
    context.state_ = s.state;
  }
  return &it;
}

}  // namespace tandem
