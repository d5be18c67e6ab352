// What calls of a plan take from it and leave to the next ones.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

Plan::Frame::Frame(const Plan& plan)
    : values(static_cast<std::size_t>(plan.num_slots_)), host_reads(plan.host_reads_.size()) {
  for (const auto& [slot, value] : plan.constants_) values[static_cast<std::size_t>(slot)] = value;
  if (plan.layout_) {
    layout = plan.layout_;
    allocate_arenas(plan);
    place_values(plan);
    arenas.clear();  // the values hold them
  }
  std::size_t inputs = 0, outputs = 0;
  for (const Step& step : plan.steps_) {
    inputs += step.inputs.size();
    outputs += step.outputs.size();
  }
  input_pointers.reserve(inputs);
  output_pointers.reserve(outputs);
  contexts.resize(plan.steps_.size());
  for (std::size_t i = 0; i < plan.steps_.size(); ++i) {
    const Step& step = plan.steps_[i];
    KernelContext& context = contexts[i];
    context.op_ = &step.node->op();
    context.attrs_ = &step.node->attrs();
    context.node_name_ = step.node->name();
    context.inputs_ = input_pointers.data() + input_pointers.size();
    for (int slot : step.inputs) input_pointers.push_back(&values[static_cast<std::size_t>(slot)]);
    context.outputs_ = output_pointers.data() + output_pointers.size();
    for (int slot : step.outputs)
      output_pointers.push_back(&values[static_cast<std::size_t>(slot)]);
    context.output_dtypes_ = step.output_dtypes.data();
    context.num_inputs_ = static_cast<int>(step.inputs.size());
    context.set_num_outputs(static_cast<int>(step.outputs.size()));
    context.planned_outputs_ = plan.varying_ ? 0 : step.planned_outputs;
    context.owned_inputs_ = step.owned_inputs;
    context.services_ = plan.services_[static_cast<std::size_t>(step.device)];
    for (std::size_t o = 0; plan.placed_ && o < step.outputs.size() && o < 32; ++o) {
      if (plan.slot_memory(step.outputs[o]) == 0) context.host_outputs_ |= std::uint32_t{1} << o;
    }
    context.state_ = step.state;
  }
}

void Plan::Frame::allocate_arenas(const Plan& plan) {
  arenas.resize(layout->bytes.size());
  for (std::size_t m = 0; m < arenas.size(); ++m) {
    if (layout->bytes[m] == 0) continue;
    Device& device = *plan.devices_[m];
    const AllocationScope holder(plan.arena_names_[m]);
    const std::size_t bytes = layout->bytes[m];
    arenas[m] =
        allocate_with_room(device, bytes, [&] { return device.allocator().allocate(bytes); });
    arenas[m]->mark_planned();
  }
}

void Plan::Frame::place_values(const Plan& plan) {
  for (const PlannedSlot& p : plan.planned_) {
    const Ref<Buffer>& arena = arenas[static_cast<std::size_t>(p.memory)];
    std::byte* begin = static_cast<std::byte*>(arena->data());
    if (const MemorySpace* space = arena->space()) begin += space->kernel_offset;
    values[static_cast<std::size_t>(p.slot)] =
        Array(p.dtype, p.shape.at(sizes), arena,
              begin + layout->offsets[static_cast<std::size_t>(p.value)]);
  }
}

void Plan::Frame::resize(const Plan& plan, SymbolValues wanted) {
  sizes.assign(wanted.begin(), wanted.end());
  const bool large_enough =
      layout && std::equal(sizes.begin(), sizes.end(), layout->capacity.begin(),
                           [](std::int64_t size, std::int64_t most) { return size <= most; });
  if (!large_enough) {
    // What is there goes first: memory may not suffice for both.
    for (const PlannedSlot& p : plan.planned_) values[static_cast<std::size_t>(p.slot)] = Array();
    arenas.clear();
    layout = plan.layout_for(sizes, /*with_reserve=*/true);
    try {
      if (layout) allocate_arenas(plan);
    } catch (const ResourceExhaustedError&) {
      arenas.clear();
      layout = plan.layout_for(sizes, /*with_reserve=*/false);
      if (layout) allocate_arenas(plan);
    }
  }
  if (layout) place_values(plan);
  for (std::size_t i = 0; i < contexts.size(); ++i)
    contexts[i].planned_outputs_ = layout ? plan.steps_[i].planned_outputs : 0;
}

std::unique_ptr<Plan::Frame> Plan::idle_frame() {
  if (Frame* spare = spare_frame_.exchange(nullptr, std::memory_order_acq_rel))
    return std::unique_ptr<Frame>(spare);
  {
    std::lock_guard lock(frames_mutex_);
    if (!frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(frames_.back());
      frames_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(*this);
}

void Plan::fit(Frame& frame, std::span<const Array> args) {
  std::int64_t values[SymbolicDim::kMaxSymbols];
  const std::span<std::int64_t> sizes(values, static_cast<std::size_t>(varying_->num_symbols()));
  varying_->read(args, sizes);
  if (!std::equal(sizes.begin(), sizes.end(), frame.sizes.begin(), frame.sizes.end()))
    frame.resize(*this, sizes);
}

void Plan::release(std::unique_ptr<Frame> frame) {
  for (int slot : cleared_slots_) frame->values[static_cast<std::size_t>(slot)] = Array();
  Frame* none = nullptr;
  if (spare_frame_.compare_exchange_strong(none, frame.get(), std::memory_order_acq_rel)) {
    static_cast<void>(frame.release());
    return;
  }
  std::lock_guard lock(frames_mutex_);
  frames_.push_back(std::move(frame));
}

void Plan::collect_spare_frame() const {
  if (Frame* spare = spare_frame_.exchange(nullptr, std::memory_order_acq_rel))
    frames_.emplace_back(spare);
}

void Plan::reclaim() {
  std::vector<std::unique_ptr<Frame>> idle;
  std::lock_guard lock(frames_mutex_);
  collect_spare_frame();
  idle.swap(frames_);
}

void Plan::place_results(Frame& frame, std::span<const Array> places) const {
  for (std::size_t r = 0; r < makers_.size(); ++r) {
    const Maker& maker = makers_[r];
    if (maker.step < 0 || places[r].dtype() == DType::kInvalid) continue;
    frame.values[static_cast<std::size_t>(result_slots_[r])] = places[r];
    KernelContext& context = frame.contexts[static_cast<std::size_t>(maker.step)];
    context.planned_outputs_ |= std::uint64_t{1} << maker.output;
    context.offered_outputs_ |= std::uint64_t{1} << maker.output;
  }
}

void Plan::forget_places(Frame& frame) const {
  for (const Maker& maker : makers_) {
    if (maker.step < 0) continue;
    const auto s = static_cast<std::size_t>(maker.step);
    frame.contexts[s].planned_outputs_ = frame.layout ? steps_[s].planned_outputs : 0;
    frame.contexts[s].offered_outputs_ = 0;
  }
}

std::vector<std::size_t> Plan::arena_bytes(std::span<const Array> args) const {
  if (!varying_) return layout_ ? layout_->bytes : std::vector<std::size_t>(devices_.size(), 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(varying_->num_symbols()));
  varying_->read(args, sizes);
  const auto layout = layout_for(sizes, /*with_reserve=*/true);
  return layout ? layout->bytes : std::vector<std::size_t>(devices_.size(), 0);
}

std::size_t Plan::idle_frames(std::span<const Array> args) const {
  std::vector<std::int64_t> sizes(varying_ ? static_cast<std::size_t>(varying_->num_symbols()) : 0);
  if (varying_) varying_->read(args, sizes);
  std::lock_guard lock(frames_mutex_);
  collect_spare_frame();
  return static_cast<std::size_t>(
      std::count_if(frames_.begin(), frames_.end(), [&](const auto& frame) {
        return !varying_ || (frame->layout &&
                             std::equal(sizes.begin(), sizes.end(), frame->layout->capacity.begin(),
                                        [](auto size, auto most) { return size <= most; }));
      }));
}

std::size_t Plan::idle_bytes() const {
  std::lock_guard lock(frames_mutex_);
  collect_spare_frame();
  std::size_t sum = 0;
  for (const auto& frame : frames_) {
    if (!frame->layout) continue;
    for (const std::size_t bytes : frame->layout->bytes) sum += bytes;
  }
  return sum;
}

// A node with its attributes, its step and a context in each frame take some two kilobytes; what
// passes computed for these shapes alone belongs to no other plan.
std::size_t Plan::plan_bytes() const {
  constexpr std::size_t kBytesOfNode = 2048;
  std::size_t sum = kBytesOfNode * function_->graph.num_nodes();
  for (const auto& node : function_->graph.nodes()) {
    if (node->kind() != NodeKind::kConst) continue;
    const auto& value = node->attr<std::shared_ptr<const Array>>("value");
    if (value.use_count() == 1) sum += value->num_bytes();
  }
  return sum;
}

}  // namespace tandem
