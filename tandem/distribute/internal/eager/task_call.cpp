#include "tandem/distribute/internal/eager/task_call.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/error_text.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"

namespace tandem::distribute {
namespace {

constexpr const char* kEnqueue = "/tensorflow.eager.EagerService/Enqueue";
constexpr const char* kRunComponent = "/tensorflow.eager.EagerService/RunComponentFunction";

// One call in progress: the parts of other tasks, this task's own, and `start` until it is over.
class TaskCall : public std::enable_shared_from_this<TaskCall> {
 public:
  TaskCall(std::shared_ptr<EagerContext> context, std::shared_ptr<const TaskFunction> function,
           std::shared_ptr<const EagerProgram> program, std::vector<TaskInput> inputs,
           OperationDone done)
      : context_(std::move(context)),
        function_(std::move(function)),
        program_(std::move(program)),
        inputs_(std::move(inputs)),
        done_(std::move(done)),
        peers_(context_->peers()),
        step_(context_->function_step(new_step_id())) {}

  void start() {
    const GraphPart& own = function_->own();
    {
      const MutexLock lock(mutex_);
      open_ = 1 + (own.function ? 1 : 0) + function_->remotes().size();
    }
    for (const TaskFunction::Remote& remote : function_->remotes()) give(remote);
    if (own.function) run_own();
    end_part(nullptr);
  }

 private:
  proto::EnqueueRequest request_to_context() const {
    proto::EnqueueRequest request;
    request.context_id = static_cast<io::proto::Fixed64>(context_->id());
    return request;
  }

  void give(const TaskFunction::Remote& remote) {
    Channel* channel = peers_ ? peers_->find(remote.task) : nullptr;
    if (channel == nullptr) {
      return end_part(std::make_exception_ptr(InvalidArgumentError(
          cat("A function has a part in ", remote.task, ", which is no task of the cluster."))));
    }
    if (context_->task_functions().is_registered(remote)) return run(remote, *channel);
    proto::FunctionList library;
    read_part(remote.definition, library);
    proto::EnqueueRequest request = request_to_context();
    proto::QueueItem& item = request.queue.emplace_back();
    item.which_item = proto::QueueItem::Case::kRegisterFunction;
    proto::RegisterFunctionItem& added = item.register_function.make();
    added.is_component_function = true;
    added.library.make();
    for (const std::string_view definition : library.function) {
      proto::FunctionParts parts;
      read_part(definition, parts);
      if (parts.signature->name == remote.name) {
        added.function_def = definition;
      } else {
        added.library.make().function.push_back(definition);
      }
    }
    channel->call(
        kEnqueue, write_message(request), {.cancellation = step_->cancellation},
        [self = shared_from_this(), &remote, channel](const Status& status, const Bytes&) {
          if (!status.ok()) return self->end_part(error_of_peer(status, remote.task, kEnqueue));
          self->context_->task_functions().set_registered(remote);
          self->run(remote, *channel);
        });
  }

  void run(const TaskFunction::Remote& remote, Channel& channel) {
    proto::RunComponentFunctionRequest request;
    request.context_id = static_cast<io::proto::Fixed64>(context_->id());
    proto::EagerOperation& operation = request.operation.make();
    operation.id = -1;  // there are no results that anyone could ask for
    operation.name = remote.name;
    operation.device = remote.device;
    operation.is_component_function = true;
    operation.is_function = true;
    operation.func_step_id = step_->id;
    for (const int arg : remote.args) {
      proto::EagerInput& input = operation.op_inputs.emplace_back();
      input.which_item = proto::EagerInput::Case::kRemoteHandle;
      input.remote_handle.make() = inputs_[static_cast<std::size_t>(arg)].handle;
    }
    channel.call(
        kRunComponent, write_message(request), {.cancellation = step_->cancellation},
        [self = shared_from_this(), &remote](const Status& status, const Bytes&) {
          self->end_part(status.ok() ? nullptr : error_of_peer(status, remote.task, kRunComponent));
        });
  }

  void run_own() {
    std::vector<Array> args;
    for (const int arg : function_->own().args)
      args.push_back(inputs_[static_cast<std::size_t>(arg)].value);
    context_->worker().run(context_->session(), function_->own().function, step_, std::move(args),
                           false, [self = shared_from_this()](Worker::Outcome outcome) {
                             if (!outcome.error) {
                               const MutexLock lock(self->mutex_);
                               self->own_results_ = std::move(outcome.results);
                             }
                             self->end_part(outcome.error);
                           });
  }

  // What began elsewhere is a consequence: the failure itself comes from its own task.
  void end_part(const std::exception_ptr& error) {
    bool is_first = false, was_last = false;
    {
      const MutexLock lock(mutex_);
      if (error) {
        is_first = !error_;
        if (is_first ||
            (began_elsewhere(message_of(error_)) && !began_elsewhere(message_of(error))))
          error_ = error;
      }
      was_last = --open_ == 0;
    }
    if (is_first) {
      step_->rendezvous->start_abort(error);
      clean_up_others();  // what they wait for may never come
    }
    if (was_last) finish();
  }

  void clean_up_others() {
    proto::EnqueueRequest request = request_to_context();
    proto::QueueItem& item = request.queue.emplace_back();
    item.which_item = proto::QueueItem::Case::kCleanupFunction;
    item.cleanup_function.make().step_id = step_->id;
    for (const TaskFunction::Remote& remote : function_->remotes()) {
      if (Channel* channel = peers_ ? peers_->find(remote.task) : nullptr)
        channel->call(kEnqueue, write_message(request), {}, [](const Status&, const Bytes&) {});
    }
  }

  void finish() {
    std::exception_ptr error;
    std::vector<Array> results;
    {
      const MutexLock lock(mutex_);
      error = error_;
      if (!error) {
        const GraphPart& own = function_->own();
        results.resize(program_->function->results().size());
        for (std::size_t i = 0; i < own_results_.size(); ++i)
          results[static_cast<std::size_t>(own.results[i])] = std::move(own_results_[i]);
      }
    }
    if (!error) clean_up_others();
    context_->worker().steps().clean_up(step_->id);
    const OperationDone done = std::move(done_);
    if (error) error = Status{code_of(error), with_node_lines(message_of(error)), {}}.error();
    done(error, std::move(results));
  }

  const std::shared_ptr<EagerContext> context_;
  const std::shared_ptr<const TaskFunction> function_;
  const std::shared_ptr<const EagerProgram> program_;
  const std::vector<TaskInput> inputs_;
  OperationDone done_;
  const std::shared_ptr<const Peers> peers_;
  const std::shared_ptr<WorkerStep> step_;
  Mutex mutex_;
  std::size_t open_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  std::vector<Array> own_results_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace

void run_over_tasks(const std::shared_ptr<EagerContext>& context,
                    const std::shared_ptr<const EagerProgram>& program, const std::string& device,
                    std::vector<TaskInput> inputs, OperationDone done) {
  const auto function = context->task_functions().get(program, inputs, *context, device);
  std::make_shared<TaskCall>(context, function, program, std::move(inputs), std::move(done))
      ->start();
}

}  // namespace tandem::distribute
