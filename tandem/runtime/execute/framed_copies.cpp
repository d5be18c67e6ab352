// How a framed run copies values to where steps need them, and notifies the profiler of what
// devices did.
#include "tandem/runtime/execute/framed_copies.h"

#include <algorithm>
#include <utility>

#include "tandem/device/memory_space.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/framed_run.h"
#include "tandem/runtime/execute/transfers.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

}  // namespace

// True if all are there; else the step becomes ready once more when they are. What is wrong with
// one input is reported when no other is on its way.
bool FramedRun::bring_inputs(const Ready& entry) {
  const FramedStep& s = step(entry.step);
  std::exception_ptr error;
  int& arriving = at(entry.iteration->arriving, s.local);
  for (int i = 0; i < s.num_inputs; ++i) {
    try {
      if (!bring_input(entry, i)) ++arriving;
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (arriving != 0) return false;
  if (error) std::rethrow_exception(error);
  return true;
}

bool FramedRun::bring_input(const Ready& entry, int i) {
  const FramedStep& s = step(entry.step);
  Array& input = at(entry.iteration->inputs, s.first_input + i);
  Ref<Copies>& copies = at(entry.iteration->input_copies, s.first_input + i);
  bool host = false;
  if (s.kind == NodeKind::kSwitch) {
    if (i == 0) return true;  // forwarded from wherever it lies
    host = true;
  } else {
    host = input_on_host(*s.node, i) || (!s.accelerator && !calls_functions(s.kind));
    if (!host && !s.accelerator) return true;
  }
  // Conditions count as true where they were not computed; reading anything else is an error.
  const bool refused = host && input.dtype() != DType::kBool && !is_computed(input);
  Device* const to = host ? nullptr : s.accelerator;
  Device* const from = device_of(input);
  if (refused || from == to || is_object(input.dtype()) || is_ref(input.dtype()) ||
      (!from && !input.on_host())) {  // the last: its device is gone
    const bool look = host && input.dtype() != DType::kBool;
    input = look   ? copy_to_host(input)
            : host ? copy_to_host_unchecked(input)
                   : kernel_view(copy_to_device(input, *to));
    copies = nullptr;
    return true;
  }
  const AllocationScope holder(s.node->name());
  Arrival& arrival = arrival_of(*copies, input, to);
  if (!arrival.over) {
    arrival.waiting.push_back(entry);
    return false;
  }
  if (arrival.error) std::rethrow_exception(arrival.error);
  // The last to hold the value may write over its copy.
  input = copies->unique() ? std::move(arrival.copy) : arrival.copy;
  copies = nullptr;
  return true;
}

// The value there, or on its way.
FramedRun::Arrival& FramedRun::arrival_of(Copies& copies, const Array& value, Device* to) {
  for (const Ref<Arrival>& a : copies.arrivals) {
    if (a->to == to) return *a;
  }
  Ref<Arrival> arrival = make_ref<Arrival>();
  arrival->to = to;
  arrival->copy = to ? kernel_view(allocate_on(*to, value.dtype(), value.shape()))
                     : Array(value.dtype(), value.shape());
  if (!is_computed(value)) mark_unmaterialized(arrival->copy);
  const StepRecorder::Time begin = recorder_ ? StepRecorder::now() : 0;
  ++elsewhere_;
  try {
    start_transfer(value, arrival->copy,
                   [this, arrival, begin, made = Ref<Copies>(&copies), from = device_of(value), to,
                    bytes = value.num_bytes()](std::exception_ptr error) mutable {
                     if (begin != 0 && !error)
                       record_copy(*made, from, to, static_cast<double>(bytes), begin);
                     report({.entry = {},
                             .error = std::move(error),
                             .arrival = std::move(arrival),
                             .copies = std::move(made)});
                   });
  } catch (...) {
    --elsewhere_;
    throw;
  }
  copies.arrivals.push_back(arrival);
  return *copies.arrivals.back();
}

void FramedRun::arrived(Arrival& arrival, std::exception_ptr error) {
  arrival.over = true;
  arrival.error = std::move(error);
  for (const Ready& waits : arrival.waiting) {
    if (--at(waits.iteration->arriving, step(waits.step).local) == 0) ready_.push_back(waits);
  }
  arrival.waiting.clear();
}

// ---- For the profiler; called by backends' threads ----

// A copy waits for others on its stream before it begins.
StepRecorder::Time FramedRun::begin_on(int track, StepRecorder::Time begin,
                                       StepRecorder::Time end) {
  std::lock_guard lock(mutex_);
  StepRecorder::Time& free = track_free_[track];
  begin = std::max(begin, free);
  free = end;
  return begin;
}

void FramedRun::record_on_device(const FramedStep& s, const KernelContext& context,
                                 StepRecorder::Time begin) {
  const int track = recorder_->stream_track(*s.accelerator, StreamKind::kCompute, 0);
  const StepRecorder::Time end = StepRecorder::now();
  recorder_->kernel(track, recorded_->of(*s.node), begin_on(track, begin, end), end,
                    StepRecorder::bytes_of(context));
}

void FramedRun::record_copy(const Copies& copies, const Device* from, const Device* to,
                            double bytes, StepRecorder::Time begin) {
  const int track =
      recorder_->stream_track(to ? *to : *from, to ? StreamKind::kCopyIn : StreamKind::kCopyOut, 0);
  const StepRecorder::Time end = StepRecorder::now();
  const auto id = static_cast<std::size_t>(copies.maker.id());
  const bool made = id < recorded_->nodes.size() && !recorded_->nodes[id].name.empty();
  recorder_->copy({.track = track,
                   .plan = recorded_,
                   .maker = made ? &copies.maker : nullptr,
                   .output = copies.output,
                   .name = copies.maker.name(),
                   .from = from ? from->name() : plan_.host().name(),
                   .to = to ? to->name() : plan_.host().name(),
                   .bytes = bytes,
                   .begin = begin_on(track, begin, end),
                   .end = end});
}

}  // namespace tandem
