#include "tandem/distribute/internal/eager/eager_service.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/eager/eager_call.h"
#include "tandem/distribute/internal/eager/enqueue_call.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

std::uint64_t number(io::proto::Fixed64 value) { return static_cast<std::uint64_t>(value); }

}  // namespace

EagerService::EagerService(Worker& worker, Network& network) : worker_(worker), network_(network) {
  const MutexLock lock(expiry_->mutex);
  expiry_->service = this;
}

void EagerService::add_to(MethodTable& methods) {
  using Handler = void (EagerService::*)(Bytes, const CallContext&, const ReplyDone&);
  const auto method = [this](Handler handler) {
    return [this, handler](Bytes request, const CallContext& caller, const ReplyDone& done) {
      (this->*handler)(std::move(request), caller, done);
    };
  };
  const auto add = [&](const char* name, Handler handler) {
    methods.add(cat("/tensorflow.eager.EagerService/", name), method(handler));
  };
  add("CreateContext", &EagerService::create_context);
  add("UpdateContext", &EagerService::update_context);
  add("Enqueue", &EagerService::enqueue);
  add("WaitQueueDone", &EagerService::wait_queue_done);
  add("RunComponentFunction", &EagerService::run_component_function);
  add("KeepAlive", &EagerService::keep_alive);
  add("CloseContext", &EagerService::close_context);
  methods.add_stream("/tensorflow.eager.EagerService/StreamingEnqueue",
                     method(&EagerService::enqueue));
}

std::shared_ptr<const Peers> EagerService::peers_of(const proto::EagerServerDef& server) const {
  const std::string named = task_name(server.job_name, server.task_index);
  if (named != worker_.task()) {
    throw InvalidArgumentError(cat("The client's cluster calls this task ", named, ", but it is ",
                                   worker_.task(), ". Name it so in the client's ClusterSpec."));
  }
  ClusterSpec::Jobs jobs;
  for (const proto::JobDef& job : server.cluster->job) {
    for (const auto& [task, address] : job.tasks) jobs[job.name][task] = address;
  }
  return std::make_shared<const Peers>(ClusterSpec(std::move(jobs)), network_);
}

void EagerService::create_context(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::CreateContextRequest message;
  read_message(request, message);
  EagerContext::Options options;
  options.id = number(message.context_id);
  options.view = number(message.context_view_id);
  options.keep_alive = std::chrono::seconds(message.keep_alive_secs);
  options.peers = peers_of(*message.server_def);
  options.devices = message.cluster_device_attributes;
  std::vector<std::shared_ptr<EagerContext>> ended;  // without the lock
  if (message.clear_existing_contexts) {
    const MutexLock lock(mutex_);
    for (auto& [id, entry] : contexts_) ended.push_back(std::move(entry.context));
    contexts_.clear();
  }
  for (const auto& context : ended) context->close();
  {
    const MutexLock lock(mutex_);
    if (contexts_.contains(options.id)) {
      throw InvalidArgumentError(
          cat("EagerService:CreateContext failed. Context id: <", options.id, "> already exists."));
    }
    const auto context = std::make_shared<EagerContext>(worker_, options);
    contexts_[options.id].context = context;
    if (options.keep_alive.count() > 0) expire_after(options.id, options.keep_alive);
  }
  proto::CreateContextResponse response;
  response.device_attributes = worker_.devices();
  done({}, write_message(response));
}

void EagerService::update_context(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::UpdateContextRequest message;
  read_message(request, message);
  const auto context = find(number(message.context_id));
  const std::uint64_t view = number(message.context_view_id);
  if (view != context->view() + 1) {
    throw InvalidArgumentError(cat("EagerService:UpdateContext failed. Context id: <",
                                   context->id(), "> currently at view #", context->view(),
                                   " but received update request at view #", view,
                                   ". View id should only be continuously incremented."));
  }
  // Without a server definition only the view's number changes.
  context->update(view, message.server_def.has() ? peers_of(*message.server_def) : nullptr,
                  message.cluster_device_attributes);
  proto::UpdateContextResponse response;
  response.device_attributes = worker_.devices();
  done({}, write_message(response));
}

void EagerService::enqueue(Bytes request, const CallContext& caller, const ReplyDone& done) {
  proto::EnqueueRequest message;
  read_message(request, message);
  const auto context = find(number(message.context_id));
  std::make_shared<EnqueueCall>(context, std::move(request), std::move(message), done)
      ->start(caller.cancellation);
}

void EagerService::wait_queue_done(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::WaitQueueDoneRequest message;
  read_message(request, message);
  find(number(message.context_id))->when_idle([done] { done({}, {}); });
}

void EagerService::run_component_function(Bytes request, const CallContext& caller,
                                          const ReplyDone& done) {
  struct Call {
    Bytes request;
    proto::RunComponentFunctionRequest message;
    CancellationCallback caller_gone;
  };
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  read_message(call->request, call->message);
  const auto context = find(number(call->message.context_id));
  if (!call->message.operation->is_component_function) {
    throw InvalidArgumentError(
        "RunComponentFunction request can only be used to execute component functions.");
  }
  context->begin_call();
  // What is cancelled is the whole step, of which this is a part.
  call->caller_gone = CancellationCallback(
      caller.cancellation, [context, id = call->message.operation->func_step_id] {
        context->worker().steps().clean_up(
            id, std::make_exception_ptr(CancelledError("The function was cancelled.")));
      });
  run_operation(context, *call->message.operation, call->request.owner(),
                [context, call, done](const std::exception_ptr& error, std::vector<Array> results) {
                  call->caller_gone.reset();
                  proto::RunComponentFunctionResponse response;
                  const auto& outputs = call->message.output_num;
                  Status status = error ? Status::of(error) : Status();
                  for (std::size_t i = 0; i < results.size(); ++i) {
                    response.shape.push_back(shape_message(results[i]));
                    context->put(call->message.operation->id,
                                 i < outputs.size() ? outputs[i] : static_cast<int>(i),
                                 std::move(results[i]));
                  }
                  context->end_call();
                  const bool ok = status.ok();
                  done(std::move(status), ok ? write_message(response) : Bytes());
                });
}

void EagerService::keep_alive(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::KeepAliveRequest message;
  read_message(request, message);
  const auto context = find(number(message.context_id));
  context->begin_call();
  context->end_call();
  proto::KeepAliveResponse response;
  response.context_view_id = static_cast<io::proto::Fixed64>(context->view());
  done({}, write_message(response));
}

void EagerService::close_context(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::CloseContextRequest message;
  read_message(request, message);
  // One that is gone is closed; one that has changed meanwhile belongs to a later client.
  const std::uint64_t id = number(message.context_id);
  std::shared_ptr<EagerContext> context;
  {
    const MutexLock lock(mutex_);
    const auto found = contexts_.find(id);
    if (found != contexts_.end() &&
        found->second.context->view() <= number(message.context_view_id))
      context = found->second.context;
  }
  if (context) {
    static_cast<void>(remove(id));
    context->close();
  }
  done({}, {});
}

std::shared_ptr<EagerContext> EagerService::find(std::uint64_t id) const {
  const MutexLock lock(mutex_);
  const auto found = contexts_.find(id);
  if (found != contexts_.end()) return found->second.context;
  throw AbortedError(cat("Unable to find a context_id matching the specified one (", id,
                         "). Perhaps the worker was restarted, or the context was GC'd."));
}

std::shared_ptr<EagerContext> EagerService::remove(std::uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = contexts_.find(id);
  if (found == contexts_.end()) return nullptr;
  std::shared_ptr<EagerContext> removed = std::move(found->second.context);
  contexts_.erase(found);
  return removed;
}

std::size_t EagerService::num_contexts() const {
  const MutexLock lock(mutex_);
  return contexts_.size();
}

void EagerService::expire_after(std::uint64_t id, std::chrono::nanoseconds time) {
  contexts_[id].expiry =
      Timer(std::chrono::steady_clock::now() +
                std::chrono::duration_cast<std::chrono::steady_clock::duration>(time),
            [weak = std::weak_ptr<Expiry>(expiry_), id] {
              const std::shared_ptr<Expiry> expiry = weak.lock();
              if (!expiry) return;
              const MutexLock lock(expiry->mutex);
              if (expiry->service != nullptr) expiry->service->expire(id);
            });
}

void EagerService::expire(std::uint64_t id) {
  std::shared_ptr<EagerContext> ended;
  {
    const MutexLock lock(mutex_);
    const auto found = contexts_.find(id);
    if (found == contexts_.end()) return;
    const EagerContext& context = *found->second.context;
    const std::chrono::nanoseconds left = context.keep_alive() - context.idle_time();
    if (left.count() > 0) return expire_after(id, left);
    ended = std::move(found->second.context);
    contexts_.erase(found);
  }
  ended->close();
}

void EagerService::close() {
  {
    const MutexLock lock(expiry_->mutex);  // a callback in progress ends first
    expiry_->service = nullptr;
  }
  std::map<std::uint64_t, Entry> ended;
  {
    const MutexLock lock(mutex_);
    ended.swap(contexts_);
  }
  for (const auto& [id, entry] : ended) entry.context->close();
}

}  // namespace tandem::distribute
