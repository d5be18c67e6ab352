// Eager calls that are like earlier ones. Their callers do no more than what cannot wait: they take
// memory for the result and keep the inputs; the stream's thread does the rest.

#include <algorithm>
#include <utility>

#include "tandem/device/block_allocator.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/reclaimable.h"
#include "tandem/runtime/eager/device_launch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem {
namespace {

bool lies_on_device(const Tensor& t) { return t.defined() && !t.impl()->array.on_host(); }

bool was_computed(const Tensor& t) { return t.impl()->array.buffer()->computed(); }

}  // namespace

Tensor DeviceLaunch::repeat(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                            const AttrMap& attrs) {
  if (inputs.empty() || !std::all_of(inputs.begin(), inputs.end(), lies_on_device) ||
      runtime.synchronous() || runtime.log_placement() || runtime.closed())
    return {};
  const ThreadContext& thread = thread_context();
  if (thread.cancellation || thread.recorder) return {};
  std::shared_ptr<const DeviceCallPlan> plan = known_plan(runtime, op, inputs, attrs);
  if (!plan || !plan->repeats_on || plan->results->size() != 1 ||
      !std::all_of(inputs.begin(), inputs.end(), was_computed))
    return {};
  const Share share = begin(runtime, std::move(plan), inputs, attrs);
  share->described_ = false;
  share->thread_runtime_ = thread.runtime.get();
  return share->promise();
}

Tensor DeviceLaunch::promise() {
  const AllocationScope holder(op().name);
  promised_.push_back(allocate_result(0));
  Tensor result(new TensorImpl(promised_.back()));
  const Ref<PendingCall> call = make_ref<PendingCall>();
  TensorImpl& impl = *result.impl();
  impl.device = runtime_->devices()[static_cast<std::size_t>(plan_->device_index)];
  impl.pending = call;
  call_ = call;
  enqueue_call(call);
  return result;
}

// Where callers queue for the device's memory, the general path keeps their order.
Array DeviceLaunch::allocate_result(std::size_t i) {
  const DType dtype = plan_->output_dtypes[i];
  const Shape& shape = (*plan_->results)[i];
  const std::size_t bytes = plan_->result_bytes[i];
  Allocator& allocator = device().allocator();
  Reclaimables* const queue = allocator.reclaimables();
  if (queue && queue->room_queue_length() == 0 && bytes <= queue->room()) {
    try {
      Ref<Buffer> buffer = allocator.allocate(bytes);
      void* const data = buffer->data();
      return Array(dtype, shape, std::move(buffer), data);
    } catch (const NoRoomError&) {  // there may be once calls that are ahead have run
    }
  }
  return allocate(dtype, shape);
}

void DeviceLaunch::find_needs() {
  for (const Tensor& t : inputs_) {
    if (Ref<PendingCall> before = pending_call_of(t)) add_need(std::move(before));
  }
  call_->needs(std::move(needs_));
}

// What `gather_inputs`, `fill_context` and `make_results` do for calls that are described at once.
void DeviceLaunch::describe() {
  arrays_.reserve(inputs_.size());
  for (const Tensor& t : inputs_) arrays_.push_back(kernel_view(t.impl()->array));
  fill_context();
  for (std::size_t i = 0; i < promised_.size(); ++i) {
    promised_[i] = results_[i] = kernel_view(std::move(promised_[i]));
    context_.planned_outputs_ |= std::uint64_t{1} << i;
  }
  thread_.runtime = {std::shared_ptr<void>(), thread_runtime_};
  described_ = true;
}

}  // namespace tandem
