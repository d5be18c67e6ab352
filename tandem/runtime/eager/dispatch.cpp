#include "tandem/runtime/dispatch.h"

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/check_numerics.h"
#include "tandem/runtime/eager/checked_results.h"
#include "tandem/runtime/eager/eager.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/remote_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {

OpRecorder::~OpRecorder() = default;

namespace {

// Tapes may be destroyed by other threads, which cannot change this thread's list.
void drop_ended(ThreadContext& context) {
  std::erase_if(context.recorders, [](const auto& recorder) { return recorder->ended(); });
}

void notify_recorders(ThreadContext& context, const OpDef& op, std::span<const Tensor> inputs,
                      const AttrMap& attrs, std::span<const Tensor> outputs) {
  drop_ended(context);
  for (const auto& recorder : context.recorders) {
    if (recorder->wants(inputs)) recorder->record(op, inputs, attrs, outputs);
  }
}

// In this process or, where it is connected to a cluster, on another task.
std::vector<Tensor> run_somewhere(const OpDef& op, std::span<const Tensor> inputs,
                                  const AttrMap& attrs) {
  if (RemoteCalls::active()) [[unlikely]] {
    if (const auto target = remote_target(inputs, CallKind::kOp))
      return target->calls->call(target->device, op, inputs, attrs);
  }
  return run_eagerly(op, inputs, attrs);
}

std::vector<Tensor> trace_call(ThreadContext& context, const OpDef& op,
                               std::span<const Tensor> inputs, const AttrMap& attrs) {
  return context.trace->add_op(op, inputs, attrs);
}

}  // namespace

std::vector<Tensor> call(const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs) {
  ThreadContext& context = thread_context();
  std::vector<Tensor> outputs =
      context.trace ? trace_call(context, op, inputs, attrs) : run_somewhere(op, inputs, attrs);
  if (!context.recorders.empty()) notify_recorders(context, op, inputs, attrs, outputs);
  if (internal::checks_numerics()) [[unlikely]]
    check_results(op, outputs);
  return outputs;
}

Tensor call1(const OpRegistration& registration, std::span<const Tensor> inputs,
             const AttrMap& attrs) {
  ThreadContext& context = thread_context();
  Runtime& runtime = Runtime::current();
  const OpDef& op = runtime.ops().get(registration);
  Tensor output;
  if (context.trace || RemoteCalls::active()) {
    std::vector<Tensor> outputs =
        context.trace ? trace_call(context, op, inputs, attrs) : run_somewhere(op, inputs, attrs);
    if (outputs.size() != 1)
      throw InternalError(cat("op ", op.name, " has ", outputs.size(), " outputs, not one"));
    output = std::move(outputs.front());
  } else {
    output = run_eagerly_1(runtime, op, inputs, attrs);
  }
  if (!context.recorders.empty())
    notify_recorders(context, op, inputs, attrs, std::span<const Tensor>(&output, 1));
  if (internal::checks_numerics()) [[unlikely]]
    check_results(op, std::span<const Tensor>(&output, 1));
  return output;
}

Tensor call1(const OpRegistration& op, std::initializer_list<Tensor> inputs, const AttrMap& attrs) {
  return call1(op, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}

std::vector<Tensor> call(const OpRegistration& op, std::span<const Tensor> inputs,
                         const AttrMap& attrs) {
  return call(Runtime::current().ops().get(op), inputs, attrs);
}

std::vector<Tensor> call(const OpRegistration& op, std::initializer_list<Tensor> inputs,
                         const AttrMap& attrs) {
  return call(op, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}

std::vector<Tensor> raw_op(StringView name, std::span<const Tensor> inputs, const AttrMap& attrs) {
  return call(Runtime::current().ops().get(name), inputs, attrs);
}

std::vector<Tensor> raw_op(StringView name, std::initializer_list<Tensor> inputs,
                           const AttrMap& attrs) {
  return raw_op(name, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}

std::vector<Tensor> call_function(const FunctionRef& function, std::span<const Tensor> args) {
  ThreadContext& context = thread_context();
  Runtime& runtime = Runtime::current();
  const bool recording = !context.recorders.empty() && is_recording(args);
  const std::shared_ptr<const FunctionGradient> gradient =
      recording ? differentiate(function) : nullptr;
  const FunctionRef& callee = gradient ? gradient->forward : function;
  const auto make_attrs = [&] {
    AttrMap attrs{{"f", callee}, {"Tout", callee->result_dtypes()}};
    if (gradient) attrs.set("_original", function);
    return attrs;
  };
  const auto get_op = [&]() -> const OpDef& {
    return runtime.ops().get(callee->stateful() ? "StatefulPartitionedCall" : "PartitionedCall");
  };
  const auto run = [&] {
    if (RemoteCalls::active()) [[unlikely]] {
      if (const auto target = remote_target(args, CallKind::kFunction))
        return target->calls->call(target->device, callee, args);
    }
    return run_function_eagerly(runtime, *callee, args);
  };
  std::vector<Tensor> outputs =
      context.trace ? trace_call(context, get_op(), args, make_attrs()) : run();
  if (gradient) {
    notify_recorders(context, get_op(), args, make_attrs(), outputs);
    outputs.resize(function->results().size());
  }
  return outputs;
}

void record_custom_gradient(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                            const OpRecorder::Backward& backward) {
  ThreadContext& context = thread_context();
  drop_ended(context);
  for (const auto& recorder : context.recorders) {
    if (recorder->wants(inputs)) recorder->record_custom(inputs, outputs, backward);
  }
}

bool is_recording(std::span<const Tensor> inputs) {
  for (const auto& recorder : thread_context().recorders) {
    if (!recorder->ended() && recorder->wants(inputs)) return true;
  }
  return false;
}

StopRecording::StopRecording() { saved_.swap(thread_context().recorders); }
StopRecording::~StopRecording() { saved_.swap(thread_context().recorders); }

}  // namespace tandem
