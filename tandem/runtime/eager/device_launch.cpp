#include "tandem/runtime/eager/device_launch.h"

#include <cstring>
#include <iostream>
#include <string>
#include <typeinfo>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/host_reads.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/wait_until_done.h"
#include "tandem/graph/kernel.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/eager/eager_devices.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/step_scope.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem {
namespace {

std::shared_ptr<const DeviceCallPlan> plan_of(Runtime& runtime, const OpDef& op,
                                              std::span<const Tensor> inputs,
                                              const AttrMap& given) {
  if (auto known = known_plan(runtime, op, inputs, given)) return known;
  return std::make_shared<const DeviceCallPlan>(runtime, op, inputs, given);
}

}  // namespace

std::unique_ptr<DeviceLaunch> DeviceLaunches::take() {
  {
    std::lock_guard lock(mutex_);
    if (!launches_.empty()) {
      std::unique_ptr<DeviceLaunch> launch = std::move(launches_.back());
      launches_.pop_back();
      return launch;
    }
    if (launches_.capacity() < kMax) launches_.reserve(kMax);  // so that giving cannot fail
  }
  return std::make_unique<DeviceLaunch>();
}

void DeviceLaunches::give(std::unique_ptr<DeviceLaunch> launch) noexcept {
  std::lock_guard lock(mutex_);
  if (launches_.size() < kMax) launches_.push_back(std::move(launch));
}

std::vector<Tensor> DeviceLaunch::run(Runtime& runtime, const OpDef& op,
                                      std::span<const Tensor> inputs, const AttrMap& attrs) {
  return begin(runtime, plan_of(runtime, op, inputs, attrs), inputs, attrs)->start();
}

Ref<PendingCall> DeviceLaunch::pending_call_of(const Tensor& t) {
  Event* const event = t.impl()->pending.get();
  // The class is final: no need for a search through its bases.
  const bool is_call = event && typeid(*event) == typeid(PendingCall);
  return Ref<PendingCall>(is_call ? static_cast<PendingCall*>(event) : nullptr);
}

DeviceLaunch::Share DeviceLaunch::begin(Runtime& runtime,
                                        std::shared_ptr<const DeviceCallPlan> plan,
                                        std::span<const Tensor> inputs, const AttrMap& attrs) {
  const std::shared_ptr<PendingCalls>& calls = runtime.pending_calls();
  std::unique_ptr<DeviceLaunch> taken = calls->launches().take();
  DeviceLaunch& launch = *taken;
  launch.owners_.store(1, std::memory_order_relaxed);
  launch.calls_ = calls;
  launch.plan_ = std::move(plan);
  Share share(taken.release());
  launch.runtime_ = &runtime;
  launch.given_ = &attrs;
  launch.inputs_.assign(inputs.begin(), inputs.end());
  return share;
}

void DeviceLaunch::release() noexcept {
  if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<PendingCalls> calls = std::move(calls_);
  clear();
  calls->launches().give(std::unique_ptr<DeviceLaunch>(this));
}

// Lets go of all that the call held, and keeps the memory of its lists.
void DeviceLaunch::clear() noexcept {
  static const ThreadContext none;
  runtime_ = nullptr;
  given_ = nullptr;
  inputs_.clear();
  described_ = true;
  thread_runtime_ = nullptr;
  arrays_.clear();
  results_.clear();
  promised_.clear();
  many_pointers_.clear();
  failed_ = false;
  thread_ = none;
  state_ = nullptr;
  context_ = KernelContext();
  cancellation_ = nullptr;
  step_ = StepContext();
  needs_ = PendingCallList();
  call_ = nullptr;
  plan_ = nullptr;
}

std::vector<Tensor> DeviceLaunch::start() {
  if (runtime_->log_placement())
    std::cerr << cat("Executing op ", op().name, " in device ", device().name(), "\n");
  gather_inputs();
  fill_context();
  if (plan_->host_alone || calls_functions(op().traits.kind)) {
    run_here();
  } else if (only_asynchronous(*plan_->kernels)) {
    needs_.for_each([](const Ref<PendingCall>& before) { before->wait(); });
    run_here();
    end_device_kernel(context_, UnmaterializedInputs(context_));
  } else if (only_forwards()) {
    // What is pending stays so: nothing looks at the elements.
    run_device_kernel(*plan_->kernels, context_, nullptr, UnmaterializedInputs(context_));
    if (needs_.empty()) return outputs(nullptr);
    if (const Ref<PendingCall> only = needs_.only()) return outputs(only);
    call_ = make_ref<PendingCall>();
    call_->needs(std::move(needs_));
    call_->finish(nullptr);
    return outputs(call_);
  } else {
    return enqueue();
  }
  return outputs(nullptr);
}

void DeviceLaunch::gather_inputs() {
  const bool functions = calls_functions(op().traits.kind);
  arrays_.reserve(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = inputs_[i];
    const Array& a = t.impl()->array;
    const bool on_host = functions || plan_->on_host[i];
    if (on_host && t.impl()->pending) t.synchronize();
    if (functions && i != 0) {
      arrays_.push_back(a);  // functions take their arguments wherever they are
    } else if (on_host && stays_here(a)) {
      arrays_.push_back(copy_to_host_unchecked(a));
    } else {
      arrays_.push_back(on_host ? copy_to_host(a) : on_device(i));
    }
  }
}

// Nothing of it can be seen: conditions count as true, and results are unmaterialized too.
bool DeviceLaunch::stays_here(const Array& a) const {
  if (calls_functions(op().traits.kind)) return a.dtype() == DType::kBool;
  return plan_->host_alone && op().traits.kind == NodeKind::kPlain && !op().traits.stateful;
}

// The compute stream will wait for what has to be copied.
Array DeviceLaunch::on_device(std::size_t i) {
  const Tensor& t = inputs_[i];
  const Array& a = t.impl()->array;
  if (plan_->host_reader && plan_->host_reads[i] && !t.impl()->pending && is_computed(a)) {
    if (Array there = host_read(a); there.buffer()) return there;
  }
  Device* const source = device_of(a);
  Ref<PendingCall> pending = pending_call_of(t);
  if (source == &device() && !is_object(a.dtype()) && !is_ref(a.dtype())) {
    if (pending) add_need(std::move(pending));
    return kernel_view(a);
  }
  if (pending) add_need(pending);
  const AllocationScope holder(op().name);
  if (is_object(a.dtype()) || is_ref(a.dtype())) return kernel_view(copy_to_device(a, device()));
  const bool direct = source ? source->lost().empty() && source->can_copy_to(device())
                             : a.on_host() && a.buffer() && a.buffer()->owned();
  if (!direct || a.num_bytes() == 0 || runtime_->synchronous()) {
    if (pending) t.synchronize();
    return kernel_view(copy_to_device(a, device()));
  }
  const Array there = allocate(a.dtype(), a.shape());
  if (!is_computed(a)) mark_unmaterialized(there);
  const Ref<PendingCall> arrival = make_ref<PendingCall>();
  Copy copy = transfer(a, there);
  copy.done = [arrival, op = plan_->op](std::exception_ptr error) {
    arrival->finish(error ? with_line(error, cat("in uploading an input of [Op:", op->name, "]"))
                          : nullptr);
  };
  Stream& stream = copy_stream(source, &device());
  if (pending) stream.wait_for(source->stream(StreamKind::kCompute).record());
  stream.enqueue(std::move(copy));
  device().stream(StreamKind::kCompute).wait_for(stream.record());
  add_need(arrival);
  return kernel_view(there);
}

// The value in memory of the host that the kernel reads; empty if there is none. It goes back when
// the call is over.
Array DeviceLaunch::host_read(const Array& a) const {
  try {
    Ref<Buffer> buffer = plan_->host_reader->allocate_host_readable(a.num_bytes());
    void* const data = buffer->data();
    std::memcpy(data, a.raw_data(), a.num_bytes());
    return Array(a.dtype(), a.shape(), std::move(buffer), data);
  } catch (const ResourceExhaustedError&) {
    return {};
  }
}

void DeviceLaunch::add_need(Ref<PendingCall> before) {
  if (!needs_.contains(before.get())) needs_.add(std::move(before));
}

// What calls that have not run hold is free once they have.
Array DeviceLaunch::allocate(DType dtype, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
  return allocate_with_room(device(), bytes, [&] { return allocate_on(device(), dtype, shape); });
}

void DeviceLaunch::fill_context() {
  results_.resize(plan_->output_dtypes.size());
  const std::size_t count = arrays_.size() + results_.size();
  if (count > few_pointers_.size()) many_pointers_.resize(count);
  Array** const pointers = many_pointers_.empty() ? few_pointers_.data() : many_pointers_.data();
  for (std::size_t i = 0; i < arrays_.size(); ++i) pointers[i] = &arrays_[i];
  Array** const outputs = pointers + arrays_.size();
  for (std::size_t i = 0; i < results_.size(); ++i) outputs[i] = &results_[i];
  cancellation_ = thread_context().cancellation;
  if (cancellation_) {
    step_ = eager_step(thread_context());
    context_.step_ = &step_;
  }
  context_.op_ = &op();
  context_.attrs_ = &plan_->attrs;
  context_.node_name_ = op().name;
  context_.inputs_ = pointers;
  context_.outputs_ = outputs;
  context_.output_dtypes_ = plan_->output_dtypes.data();
  context_.num_inputs_ = static_cast<int>(arrays_.size());
  context_.set_num_outputs(static_cast<int>(results_.size()));
  context_.services_ = &runtime_->services(device());
  context_.host_outputs_ = plan_->host_alone ? ~std::uint32_t{0} : op().traits.host_outputs;
  if (op().traits.keeps_state) {
    state_ = runtime_->eager_state(op(), *given_);
    context_.state_ = state_.get();
  }
}

void DeviceLaunch::run_here() {
  const ScopedFlushDenormals flush;
  UnmaterializedInputs unmaterialized;
  if (!calls_functions(op().traits.kind)) unmaterialized = UnmaterializedInputs(context_);
  if (unmaterialized.any) {
    const CalledNode node(runtime_->ops(), op(), arrays_, plan_->attrs);
    const bool known = unmaterialized.host_integers < 0;  // else shapes may follow from them
    if (skip_kernel(context_, known ? node.with_known_results() : nullptr, unmaterialized))
      return mark_results(context_, unmaterialized);
  }
  const KernelDecl& kernel = plan_->kernels->choose(context_);
  if (kernel.run) {
    run_kernel(kernel, context_);
  } else {
    context_.begin_outputs();
    wait_until_done([&](auto done) { kernel.run_async(context_, std::move(done)); });
    context_.check_outputs(kernel.name);
  }
  if (unmaterialized.any) mark_results(context_, unmaterialized);
}

// Reshape, Identity, the value of a variable. Writes to variables are waited for.
bool DeviceLaunch::only_forwards() const {
  const OpTraits& traits = op().traits;
  if (traits.kind != NodeKind::kPlain || traits.keeps_state) return false;
  return traits.stateful ? traits.reads_only && traits.owns_output_memory == 1
                         : traits.shares_memory == 1;
}

std::vector<Tensor> DeviceLaunch::enqueue() {
  complete_plan();
  const bool pending = !runtime_->synchronous() && plan_->may_be_pending();
  thread_ = thread_context();  // which keeps the cancellation
  thread_.recorders.clear();   // may be gone when the call runs
  // The call must not be the last to own the runtime, which its device's thread cannot destroy.
  thread_.runtime = {std::shared_ptr<void>(), thread_.runtime.get()};
  const Ref<PendingCall> call = make_ref<PendingCall>();
  call->needs(std::move(needs_));
  call_ = call;
  std::vector<Tensor> made;
  if (pending) {
    make_results();
    made = outputs(call);
  }
  enqueue_call(call);
  if (pending) return made;
  call->wait();
  return outputs(nullptr);
}

void DeviceLaunch::enqueue_call(const Ref<PendingCall>& call) {
  calls_->add(call);
  owners_.fetch_add(1, std::memory_order_relaxed);
  try {
    if (plan_->repeats_on) {
      plan_->repeats_on->enqueue_task(*this, plan_->work.flops, plan_->work.bytes);
    } else {
      Work work;
      work.flops = plan_->work.flops;
      work.bytes = plan_->work.bytes;
      // By the pointer alone, which a function holds in itself.
      work.run = [this] { run(); };
      work.done = [this](std::exception_ptr error) { done(std::move(error)); };
      device().stream(StreamKind::kCompute).enqueue(std::move(work));
    }
  } catch (...) {
    owners_.fetch_sub(1, std::memory_order_relaxed);
    calls_->finish(call, std::current_exception());
    throw;
  }
}

// Once, on a thread of the device; the launch may be another call's afterwards.
void DeviceLaunch::done(std::exception_ptr error) noexcept {
  // A stream knows no op.
  if (error && !failed_ && !promised_.empty()) error = op_failure(op(), inputs_, error);
  const std::shared_ptr<PendingCalls> calls = calls_;
  const Ref<PendingCall> call = call_;
  release();  // before a waiter may end the runtime
  calls->finish(call, std::move(error));
}

// A plan that was found has been completed by the call that made it.
void DeviceLaunch::complete_plan() {
  if (plan_->enqueued) return;
  const auto completed = std::make_shared<DeviceCallPlan>(*plan_);
  completed->complete(*runtime_, inputs_, arrays_);
  plan_ = completed;
  context_.attrs_ = &plan_->attrs;
  context_.output_dtypes_ = plan_->output_dtypes.data();
  keep_plan(*runtime_, inputs_, *given_, plan_);
}

void DeviceLaunch::make_results() {
  const AllocationScope holder(op().name);
  const UnmaterializedInputs unmaterialized(context_);
  for (int i = 0; i < context_.num_outputs(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    Array& result = results_[at];
    result = kernel_view(allocate(plan_->output_dtypes[at], (*plan_->results)[at]));
    if (comes_unmaterialized(context_, i, unmaterialized)) mark_unmaterialized(result);
    context_.planned_outputs_ |= std::uint64_t{1} << i;
  }
  promised_ = results_;
}

// On a thread of the device.
void DeviceLaunch::run() {
  if (!described_) find_needs();
  if (const std::exception_ptr error = call_->error()) fail(error);  // of what it needs
  const PendingCalls::Use use(*calls_);
  if (!described_) describe();
  const ThreadContextScope scope(thread_);
  try {
    if (cancellation_) cancellation_->check();
    const auto recorder = StepRecorder::active();
    const StepRecorder::Time begin = recorder ? StepRecorder::now() : 0;
    run_device_kernel(*plan_->kernels, context_, nullptr, UnmaterializedInputs(context_));
    if (recorder) {
      recorder->eager(recorder->stream_track(device(), StreamKind::kCompute, 0), op().name, begin,
                      StepRecorder::now(), StepRecorder::bytes_of(context_));
    }
    keep_promise();
    call_->mark_run();
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    if (!promised_.empty()) error = op_failure(op(), inputs_, error);
    fail(error);
  }
}

void DeviceLaunch::fail(const std::exception_ptr& error) {
  failed_ = true;
  call_->fail(error);
  std::rethrow_exception(error);
}

// Some kernels forward an array instead of filling the one that is there.
void DeviceLaunch::keep_promise() {
  for (std::size_t i = 0; i < promised_.size(); ++i) {
    const Array& made = results_[i];
    const Array& promised = promised_[i];
    if (made.raw_data() == promised.raw_data()) continue;
    if (made.shape() != promised.shape() || made.dtype() != promised.dtype()) {
      throw InternalError(cat("output ", i, " was announced as ", promised.dtype(),
                              promised.shape(), " but is ", made.dtype(), made.shape()));
    }
    if (made.num_bytes() != 0) std::memcpy(promised.raw_data(), made.raw_data(), made.num_bytes());
  }
}

std::vector<Tensor> DeviceLaunch::outputs(const Ref<Event>& pending) const {
  std::vector<Tensor> tensors;
  tensors.reserve(results_.size());
  for (const Array& a : results_) {
    tensors.push_back(tensor_on(*runtime_, a));
    TensorImpl& impl = *tensors.back().impl();
    impl.pending = pending;
    if (impl.device || &device() == &runtime_->default_device()) continue;
    impl.device = runtime_->devices()[static_cast<std::size_t>(runtime_->index_of(device()))];
  }
  return tensors;
}

}  // namespace tandem
