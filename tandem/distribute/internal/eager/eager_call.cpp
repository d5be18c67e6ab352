#include "tandem/distribute/internal/eager/eager_call.h"

#include <string>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/eager/task_call.h"
#include "tandem/distribute/internal/wire/error_text.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/rendezvous_key.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {
namespace {

// The attributes of a send or receive.
RendezvousKey key_of(const proto::EagerOperation& operation) {
  std::string tensor, source, destination;
  std::int64_t incarnation = 0;
  for (const std::string_view bytes : operation.attrs) {
    proto::AttrEntry attr;
    read_part(bytes, attr);
    if (attr.key == "tensor_name") tensor = attr.value->s;
    if (attr.key == "send_device") source = attr.value->s;
    if (attr.key == "recv_device") destination = attr.value->s;
    if (attr.key == "send_device_incarnation") incarnation = attr.value->i;
  }
  return {source, static_cast<std::uint64_t>(incarnation), destination, tensor, {}};
}

// An op has one node, so that its failure need not name it.
std::exception_ptr without_node(const std::exception_ptr& error) {
  const std::string message = message_of(error);
  const std::size_t node = message.find("[[{{node ");
  if (node == std::string::npos) return error;
  std::string text = message.substr(0, node);
  while (!text.empty() && std::string_view(" \t\n").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return Status{code_of(error), std::move(text), {}}.error();
}

std::exception_ptr with_tensorflows_nodes(const std::exception_ptr& error) {
  return Status{code_of(error), with_node_lines(message_of(error)), {}}.error();
}

bool transfer(const std::shared_ptr<EagerContext>& context, const proto::EagerOperation& operation,
              const std::vector<Array>& inputs, const OperationDone& done) {
  const OpDef* op = context->worker().runtime().ops().find(operation.name);
  if (op == nullptr) return false;
  if (op->traits.kind == NodeKind::kSend) {
    if (inputs.size() != 1) throw InvalidArgumentError("A send takes one input.");
    context->step()->rendezvous->send(key_of(operation), inputs.front(), false);
    done(nullptr, {});
    return true;
  }
  if (op->traits.kind != NodeKind::kRecv) return false;
  context->step()->rendezvous->recv_async(
      key_of(operation), context->step()->cancellation.get(),
      [context, done](const std::exception_ptr& error, Array value, bool) {
        if (error) return done(error, {});
        done(nullptr, {std::move(value)});
      });
  return true;
}

std::vector<TaskInput> inputs_of(const EagerContext& context,
                                 const proto::EagerOperation& operation,
                                 const std::shared_ptr<const void>& owner) {
  std::vector<TaskInput> inputs;
  for (const proto::EagerInput& input : operation.op_inputs) {
    TaskInput& taken = inputs.emplace_back();
    const proto::RemoteTensorHandle& handle = *input.remote_handle;
    const std::string_view task = task_of_device(handle.device);
    if (input.which_item == proto::EagerInput::Case::kTensor) {
      taken.value = read_tensor(input.tensor, owner);
    } else if (task.empty() || task == context.worker().task()) {
      taken.value = context.get(handle.op_id, handle.output_num);
    } else {
      taken.task = task;
      taken.handle = handle;
      taken.dtype = static_cast<DType>(handle.dtype);
      continue;
    }
    taken.dtype = taken.value.dtype();
  }
  return inputs;
}

}  // namespace

void run_operation(const std::shared_ptr<EagerContext>& context,
                   const proto::EagerOperation& operation, const std::shared_ptr<const void>& owner,
                   OperationDone done) {
  try {
    std::vector<TaskInput> inputs = inputs_of(*context, operation, owner);
    std::vector<Array> values;
    std::vector<DType> dtypes;
    bool elsewhere = false;
    for (const TaskInput& input : inputs) {
      dtypes.push_back(input.dtype);
      values.push_back(input.value);
      elsewhere = elsewhere || !input.task.empty();
    }
    if (!elsewhere && transfer(context, operation, values, done)) return;
    const std::shared_ptr<const EagerProgram> program = context->programs().get(operation, dtypes);
    const bool component = operation.is_component_function;
    if (!component && program->calls_functions && (elsewhere || program->spans_tasks))
      return run_over_tasks(context, program, operation.device, std::move(inputs), std::move(done));
    if (elsewhere) {
      throw InvalidArgumentError(cat("Op ", operation.name, " on ", context->worker().task(),
                                     " takes a value that another task has. Only functions may."));
    }
    inputs.clear();
    // A call is a step of its own, which ends with it; a component is part of one.
    const bool own_step = program->calls_functions && !component;
    const std::shared_ptr<WorkerStep> step = component
                                                 ? context->function_step(operation.func_step_id)
                                             : own_step ? context->function_step(new_step_id())
                                                        : context->step();
    context->worker().run(context->session(), program->function, step, std::move(values), false,
                          [context, step, own_step, program, done](Worker::Outcome outcome) {
                            if (own_step) context->worker().steps().clean_up(step->id);
                            if (!outcome.error) return done(nullptr, std::move(outcome.results));
                            done(program->calls_functions ? with_tensorflows_nodes(outcome.error)
                                                          : without_node(outcome.error),
                                 {});
                          });
  } catch (...) {
    done(std::current_exception(), {});
  }
}

}  // namespace tandem::distribute
