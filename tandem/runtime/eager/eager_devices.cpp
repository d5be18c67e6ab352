#include "tandem/runtime/eager/eager_devices.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/wait_until_done.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/eager/device_call_plan.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/step_scope.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

Ref<PendingCall> pending_call_of(const Tensor& t) {
  return Ref<PendingCall>(dynamic_cast<PendingCall*>(t.impl()->pending.get()));
}

// A call on its way to a device, kept by the work that was given to it.
class Launch {
 public:
  Launch(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs)
      : runtime_(runtime),
        calls_(runtime.pending_calls()),
        given_(attrs),
        inputs_(inputs.begin(), inputs.end()),
        plan_(plan_of(runtime, op, inputs, attrs)),
        op_(*plan_->op),
        device_(plan_->device) {}

  static std::vector<Tensor> start(const std::shared_ptr<Launch>& launch) {
    Launch& l = *launch;
    if (l.runtime_.log_placement())
      std::cerr << cat("Executing op ", l.op_.name, " in device ", l.device_->name(), "\n");
    l.gather_inputs();
    l.fill_context();
    if (l.plan_->host_alone || calls_functions(l.op_.traits.kind)) {
      l.run_here();
    } else if (only_asynchronous(*l.plan_->kernels)) {
      for (const Ref<PendingCall>& before : l.needs_) before->wait();
      l.run_here();
      end_device_kernel(l.context_, UnmaterializedInputs(l.context_));
    } else if (l.only_forwards()) {
      // What is late stays so: nothing looks at the elements.
      run_device_kernel(*l.plan_->kernels, l.context_, nullptr, UnmaterializedInputs(l.context_));
      if (l.needs_.empty()) return l.outputs(nullptr);
      if (l.needs_.size() == 1) return l.outputs(l.needs_[0]);
      l.hand_needs_to_call();
      l.call_->finish(nullptr);
      return l.outputs(l.call_);
    } else {
      return enqueue(launch);
    }
    return l.outputs(nullptr);
  }

 private:
  void gather_inputs() {
    const bool functions = calls_functions(op_.traits.kind);
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
        arrays_.push_back(on_host ? copy_to_host(a) : on_device(t));
      }
    }
  }

  // Nothing of it can be seen: conditions count as true, and results are unmaterialized too.
  bool stays_here(const Array& a) const {
    if (calls_functions(op_.traits.kind)) return a.dtype() == DType::kBool;
    return plan_->host_alone && op_.traits.kind == NodeKind::kPlain && !op_.traits.stateful;
  }

  // The compute stream will wait for what has to be copied.
  Array on_device(const Tensor& t) {
    const Array& a = t.impl()->array;
    Device* const source = device_of(a);
    const Ref<PendingCall> late = pending_call_of(t);
    if (late) add_need(late);
    const AllocationScope holder(op_.name);
    if (is_object(a.dtype()) || is_ref(a.dtype()) || source == device_)
      return kernel_view(copy_to_device(a, *device_));
    const bool direct = source ? source->lost().empty() && source->can_copy_to(*device_)
                               : a.on_host() && a.buffer() && a.buffer()->owned();
    if (!direct || a.num_bytes() == 0 || runtime_.synchronous()) {
      if (late) t.synchronize();
      return kernel_view(copy_to_device(a, *device_));
    }
    const Array there = allocate(a.dtype(), a.shape());
    if (!is_computed(a)) mark_unmaterialized(there);
    const Ref<PendingCall> arrival = make_ref<PendingCall>();
    Copy copy = transfer(a, there);
    copy.done = [arrival, op = plan_->op](std::exception_ptr error) {
      arrival->finish(error ? with_line(error, cat("in uploading an input of [Op:", op->name, "]"))
                            : nullptr);
    };
    Stream& stream = copy_stream(source, device_);
    if (late) stream.wait_for(source->stream(StreamKind::kCompute).record());
    stream.enqueue(std::move(copy));
    device_->stream(StreamKind::kCompute).wait_for(stream.record());
    add_need(arrival);
    return kernel_view(there);
  }

  void add_need(const Ref<PendingCall>& before) {
    const auto same = [&](const Ref<PendingCall>& other) { return other.get() == before.get(); };
    if (std::any_of(needs_.begin(), needs_.end(), same)) return;
    if (needs_.empty()) needs_.reserve(inputs_.size());
    needs_.push_back(before);
  }

  // What calls that have not run hold is free once they have.
  Array allocate(DType dtype, const Shape& shape) {
    const std::size_t bytes = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
    return allocate_with_room(*device_, bytes, [&] { return allocate_on(*device_, dtype, shape); });
  }

  void fill_context() {
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
    context_.op_ = &op_;
    context_.attrs_ = &plan_->attrs;
    context_.node_name_ = op_.name;
    context_.inputs_ = pointers;
    context_.outputs_ = outputs;
    context_.output_dtypes_ = plan_->output_dtypes.data();
    context_.num_inputs_ = static_cast<int>(arrays_.size());
    context_.set_num_outputs(static_cast<int>(results_.size()));
    context_.services_ = &runtime_.services(*device_);
    context_.host_outputs_ = plan_->host_alone ? ~std::uint32_t{0} : op_.traits.host_outputs;
    if (op_.traits.keeps_state) {
      state_ = runtime_.eager_state(op_, given_);
      context_.state_ = state_.get();
    }
  }

  void run_here() {
    const ScopedFlushDenormals flush;
    UnmaterializedInputs unmaterialized;
    if (!calls_functions(op_.traits.kind)) unmaterialized = UnmaterializedInputs(context_);
    if (unmaterialized.any) {
      const CalledNode node(runtime_.ops(), op_, arrays_, plan_->attrs);
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
  bool only_forwards() const {
    const OpTraits& traits = op_.traits;
    if (traits.kind != NodeKind::kPlain || traits.keeps_state) return false;
    return traits.stateful ? traits.reads_only && traits.owns_output_memory == 1
                           : traits.shares_memory == 1;
  }

  bool may_be_pending() const {
    const OpTraits& traits = op_.traits;
    return !runtime_.synchronous() && traits.kind == NodeKind::kPlain && !traits.stateful &&
           !traits.keeps_state && traits.shares_memory == 0 && traits.owns_output_memory == 0 &&
           traits.retains_inputs == 0 && plan_->results.has_value();
  }

  static std::vector<Tensor> enqueue(const std::shared_ptr<Launch>& launch) {
    Launch& l = *launch;
    l.complete_plan();
    const bool late = l.may_be_pending();
    l.thread_ = thread_context();  // which keeps the cancellation
    l.thread_.recorders.clear();   // may be gone when the call runs
    // The call must not be the last to own the runtime, which its device's thread cannot destroy.
    l.thread_.runtime = {std::shared_ptr<void>(), l.thread_.runtime.get()};
    std::vector<Tensor> outputs;
    if (late) {
      l.make_results();
      outputs = l.outputs(l.call_);
    }
    l.hand_needs_to_call();
    Work work;
    work.flops = l.plan_->work.flops;
    work.bytes = l.plan_->work.bytes;
    work.run = [launch] { launch->run_on_stream(); };
    work.done = [held = launch, calls = l.calls_,
                 call = l.call_](std::exception_ptr error) mutable {
      // A stream knows no op.
      if (error && !held->failed_ && !held->promised_.empty())
        error = op_failure(held->op_, held->inputs_, error);
      held.reset();  // a waiter may end the runtime
      calls->finish(call, std::move(error));
    };
    l.calls_->add(l.call_);
    try {
      l.device_->stream(StreamKind::kCompute).enqueue(std::move(work));
    } catch (...) {
      l.calls_->finish(l.call_, std::current_exception());
      throw;
    }
    if (late) return outputs;
    l.call_->wait();
    return l.outputs(nullptr);
  }

  void hand_needs_to_call() { call_->needs(std::move(needs_)); }

  static std::shared_ptr<const DeviceCallPlan> plan_of(Runtime& runtime, const OpDef& op,
                                                       std::span<const Tensor> inputs,
                                                       const AttrMap& given) {
    if (auto known = known_plan(runtime, op, inputs, given)) return known;
    return std::make_shared<const DeviceCallPlan>(runtime, op, inputs, given);
  }

  // A plan that was found has been completed by the call that made it.
  void complete_plan() {
    if (plan_->enqueued) return;
    const auto completed = std::make_shared<DeviceCallPlan>(*plan_);
    completed->complete(runtime_, arrays_);
    plan_ = completed;
    context_.attrs_ = &plan_->attrs;
    context_.output_dtypes_ = plan_->output_dtypes.data();
    keep_plan(runtime_, inputs_, given_, plan_);
  }

  void make_results() {
    const AllocationScope holder(op_.name);
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
  void run_on_stream() {
    if (const std::exception_ptr error = call_->error()) fail(error);  // of what it needs
    const PendingCalls::Use use(*calls_);
    const ThreadContextScope scope(thread_);
    try {
      if (cancellation_) cancellation_->check();
      const auto recorder = StepRecorder::active();
      const StepRecorder::Time begin = recorder ? StepRecorder::now() : 0;
      run_device_kernel(*plan_->kernels, context_, nullptr, UnmaterializedInputs(context_));
      if (recorder) {
        recorder->eager(recorder->stream_track(*device_, StreamKind::kCompute, 0), op_.name, begin,
                        StepRecorder::now(), StepRecorder::bytes_of(context_));
      }
      keep_promise();
      call_->mark_run();
    } catch (...) {
      std::exception_ptr error = std::current_exception();
      if (!promised_.empty()) error = op_failure(op_, inputs_, error);
      fail(error);
    }
  }

  [[noreturn]] void fail(const std::exception_ptr& error) {
    failed_ = true;
    call_->fail(error);
    std::rethrow_exception(error);
  }

  // Some kernels forward an array instead of filling the one that is there.
  void keep_promise() {
    for (std::size_t i = 0; i < promised_.size(); ++i) {
      const Array& made = results_[i];
      const Array& promised = promised_[i];
      if (made.raw_data() == promised.raw_data()) continue;
      if (made.shape() != promised.shape() || made.dtype() != promised.dtype()) {
        throw InternalError(cat("output ", i, " was announced as ", promised.dtype(),
                                promised.shape(), " but is ", made.dtype(), made.shape()));
      }
      if (made.num_bytes() != 0)
        std::memcpy(promised.raw_data(), made.raw_data(), made.num_bytes());
    }
  }

  std::vector<Tensor> outputs(const Ref<Event>& late) {
    std::vector<Tensor> tensors;
    for (const Array& a : results_) {
      tensors.push_back(tensor_on(runtime_, a));
      TensorImpl& impl = *tensors.back().impl();
      impl.pending = late;
      if (impl.device || device_ == &runtime_.default_device()) continue;
      impl.device = runtime_.devices()[static_cast<std::size_t>(runtime_.index_of(*device_))];
    }
    return tensors;
  }

  Runtime& runtime_;  // on the device's thread only while `calls_` are in use
  const std::shared_ptr<PendingCalls> calls_;
  const AttrMap given_;
  const std::vector<Tensor> inputs_;
  std::shared_ptr<const DeviceCallPlan> plan_;
  const OpDef& op_;
  Device* const device_;

  std::vector<Array> arrays_;  // as the kernel sees them
  std::vector<Array> results_;
  std::vector<Array> promised_;         // given to the caller before the kernel ran
  bool failed_ = false;                 // on the stream, with an error that says where
  std::array<Array*, 8> few_pointers_;  // to inputs, then results, where they are no more
  std::vector<Array*> many_pointers_;
  ThreadContext thread_;
  std::shared_ptr<NodeState> state_;
  KernelContext context_;
  std::shared_ptr<const Cancellation> cancellation_;  // of the calling thread; may be null
  StepContext step_;
  std::vector<Ref<PendingCall>> needs_;  // calls and copies whose results the inputs are
  const Ref<PendingCall> call_ = make_ref<PendingCall>();
};

}  // namespace

Tensor tensor_on(Runtime& runtime, Array value) {
  Device* device = device_of(value);
  if (!device) return Tensor(new TensorImpl(std::move(value)));
  const int place = runtime.index_of(*device);
  // A value of another runtime, whose devices this one cannot keep alive.
  if (place < 0) return Tensor(new TensorImpl(copy_to_host(value)));
  Tensor tensor(new TensorImpl(token_view(std::move(value))));
  tensor.impl()->device = runtime.devices()[static_cast<std::size_t>(place)];
  return tensor;
}

std::vector<Tensor> run_eagerly_on_devices(Runtime& runtime, const OpDef& op,
                                           std::span<const Tensor> inputs, const AttrMap& attrs) {
  return Launch::start(std::make_shared<Launch>(runtime, op, inputs, attrs));
}

}  // namespace tandem
