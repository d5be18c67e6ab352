#include "tandem/distribute/internal/eager/enqueue_call.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/eager/eager_call.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {

proto::TensorShape shape_message(const Array& value) {
  proto::TensorShape shape;
  if (!value.valid()) return shape;
  for (int axis = 0; axis < value.rank(); ++axis) shape.dim.emplace_back().size = value.dim(axis);
  return shape;
}

void EnqueueCall::start(const std::shared_ptr<const Cancellation>& caller) {
  context_->begin_call();
  caller_gone_ = CancellationCallback(caller, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->answer({Code::kCancelled, "The caller has gone."}, {});
  });
  next();
}

void EnqueueCall::answer(Status status, Bytes reply) {
  if (!answered_.exchange(true)) done_(std::move(status), std::move(reply));
}

// A loop where items end at once: a chain of them would nest.
void EnqueueCall::next() {
  while (!error_ && at_ < message_.queue.size()) {
    open_ = 2;
    response_.queue_response.emplace_back();
    run(message_.queue[at_++]);
    if (open_.fetch_sub(1) != 1) return;  // the item's end goes on
  }
  end(error_ ? Status::of(error_) : Status());
}

void EnqueueCall::end_item() {
  if (open_.fetch_sub(1) == 1) next();
}

void EnqueueCall::end(Status status) {
  // Its answer begins the next request of a stream.
  context_->end_call();
  caller_gone_.reset();
  const bool ok = status.ok();
  answer(std::move(status), ok ? write_message(response_) : Bytes());
}

void EnqueueCall::run(const proto::QueueItem& item) {
  using Case = proto::QueueItem::Case;
  try {
    switch (item.which_item) {
      case Case::kOperation: return run_operation(*item.operation);
      case Case::kHandleToDecref:
        context_->remove(item.handle_to_decref->op_id, item.handle_to_decref->output_num);
        break;
      case Case::kSendTensor: {
        int output = 0;
        for (const std::string_view tensor : item.send_tensor->tensors) {
          context_->put(item.send_tensor->op_id, output++, read_tensor(tensor, request_.owner()));
        }
        break;
      }
      case Case::kRegisterFunction: {
        const proto::RegisterFunctionItem& added = *item.register_function;
        FunctionTable& functions = context_->functions();
        bool replaced = functions.add(added.function_def, added.is_component_function);
        for (const std::string_view function : added.library->function)
          replaced = functions.add(function, false) || replaced;
        if (replaced) context_->programs().forget_functions();
        break;
      }
      case Case::kRemoveFunction:
        context_->functions().remove(item.remove_function->function_name);
        context_->programs().forget_functions();
        break;
      case Case::kCleanupFunction:
        context_->worker().steps().clean_up(item.cleanup_function->step_id);
        break;
      case Case::kSendPackedHandle: send_packed_handle(*item.send_packed_handle); break;
      case Case::kSyncRemoteExecutorForStream: break;  // what came before has ended
      case Case::kNone: throw InvalidArgumentError("An item of the queue is empty.");
    }
  } catch (...) {
    error_ = std::current_exception();
  }
  end_item();
}

void EnqueueCall::run_operation(const proto::EagerOperation& operation) {
  distribute::run_operation(
      context_, operation, request_.owner(),
      [self = shared_from_this(), &operation](std::exception_ptr error,
                                              std::vector<Array> results) {
        if (error) self->error_ = std::move(error);
        for (std::size_t i = 0; i < results.size(); ++i) {
          self->response_.queue_response.back().shape.push_back(shape_message(results[i]));
          self->context_->put(operation.id, static_cast<int>(i), std::move(results[i]));
        }
        self->end_item();
      });
}

// The parts of a variable that several devices have a part of: what runs here uses its own.
void EnqueueCall::send_packed_handle(const proto::SendPackedHandleItem& item) {
  for (const proto::PackedHandle& handle : item.handles) {
    if (handle.which_item == proto::PackedHandle::Case::kLocalHandle) {
      if (task_of_device(handle.local_handle->device) != context_->worker().task()) continue;
      return context_->put(item.op_id, 0,
                           read_tensor(handle.local_handle->tensor, request_.owner()));
    }
    const proto::RemoteTensorHandle& remote = *handle.remote_handle;
    if (task_of_device(remote.device) != context_->worker().task()) continue;
    return context_->put(item.op_id, 0, context_->get(remote.op_id, remote.output_num));
  }
  throw InvalidArgumentError(
      cat("The packed handle ", item.op_id, " has no part in ", context_->worker().task(), "."));
}

}  // namespace tandem::distribute
