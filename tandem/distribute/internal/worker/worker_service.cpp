#include "tandem/distribute/internal/worker/worker_service.h"

#include <atomic>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/internal/worker/registered_graph.h"
#include "tandem/distribute/internal/worker/step_stats.h"

namespace tandem::distribute {
namespace {

// A payload that says a worker may have been restarted, and one for errors that follow from another
// task's or part's: TensorFlow's masters report those only where there is no other.
constexpr std::string_view kRestarted =
    "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted";
constexpr std::string_view kDerived = "type.googleapis.com/tensorflow.DerivedStatus";

// A google.rpc.Status with an empty payload of this type.
std::string details_with(Code code, const std::string& message, std::string_view type) {
  std::string any = "\x0a";
  any += static_cast<char>(type.size());
  any += type;
  std::string details = "\x08";
  details += static_cast<char>(code);
  details += "\x12";
  std::size_t size = message.size();
  for (; size >= 0x80; size >>= 7) details += static_cast<char>(size | 0x80);
  details += static_cast<char>(size);
  details += message;
  details += "\x1a";
  details += static_cast<char>(any.size());
  return details + any;
}

// An AbortedError that carries the payload.
class RestartedError : public AbortedError {
 public:
  using AbortedError::AbortedError;
};

Status status_of_current() {
  try {
    throw;
  } catch (const RestartedError& error) {
    return {Code::kAborted, error.what(), details_with(Code::kAborted, error.what(), kRestarted)};
  } catch (...) {
    return Status::of(std::current_exception());
  }
}

}  // namespace

// A run that the client feeds and fetches in several calls.
struct WorkerService::Partial {
  std::atomic<bool> ended{false};
  Mutex mutex;
  Worker::Outcome outcome TANDEM_GUARDED_BY(mutex);
  std::function<void()> waiting TANDEM_GUARDED_BY(mutex);  // the last call
};

void WorkerService::add_to(MethodTable& methods) {
  using Handler = void (WorkerService::*)(Bytes, const ReplyDone&);
  const auto add = [&](const char* name, Handler handler) {
    methods.add(cat("/tensorflow.WorkerService/", name),
                [this, handler](Bytes request, const CallContext&, const ReplyDone& done) {
                  try {
                    (this->*handler)(std::move(request), done);
                  } catch (...) {
                    done(status_of_current(), {});
                  }
                });
  };
  add("GetStatus", &WorkerService::get_status);
  add("CreateWorkerSession", &WorkerService::create_session);
  add("DeleteWorkerSession", &WorkerService::delete_session);
  add("RegisterGraph", &WorkerService::register_graph);
  add("DeregisterGraph", &WorkerService::deregister_graph);
  add("CleanupGraph", &WorkerService::clean_up_graph);
  add("CleanupAll", &WorkerService::clean_up_all);
  add("Logging", &WorkerService::logging);
  add("GetStepSequence", &WorkerService::step_sequence);
  methods.add("/tensorflow.WorkerService/RunGraph",
              [this](Bytes request, const CallContext& context, ReplyDone done) {
                run_graph(std::move(request), context, std::move(done));
              });
  methods.add("/tensorflow.WorkerService/RecvTensor",
              [this](Bytes request, const CallContext& context, ReplyDone done) {
                recv_tensor(std::move(request), context, std::move(done));
              });
  methods.add("/tensorflow.WorkerService/MarkRecvFinished",
              [](const Bytes&, const CallContext&, const ReplyDone& done) { done({}, {}); });
  methods.add("/tensorflow.WorkerService/Tracing",
              [](const Bytes&, const CallContext&, const ReplyDone& done) {
                done({Code::kUnimplemented, "Tracing"}, {});
              });
}

void WorkerService::get_status(Bytes, const ReplyDone& done) {
  proto::GetStatusResponse response;
  response.device_attributes = worker_.devices();
  done({}, write_message(response));
}

void WorkerService::create_session(Bytes request, const ReplyDone& done) {
  proto::CreateWorkerSessionRequest message;
  read_message(request, message);
  if (message.session_handle.empty()) throw InvalidArgumentError("Session must be non-empty.");
  static_cast<void>(worker_.create_session(message.session_handle, message.isolate_session_state));
  done({}, {});
}

void WorkerService::delete_session(Bytes request, const ReplyDone& done) {
  proto::DeleteWorkerSessionRequest message;
  read_message(request, message);
  worker_.delete_session(message.session_handle);
  done({}, {});
}

std::shared_ptr<WorkerSession> WorkerService::session(const std::string& handle,
                                                      bool created) const {
  if (std::shared_ptr<WorkerSession> found = worker_.find_session(created ? handle : ""))
    return found;
  throw RestartedError(cat("Session handle is not found: ", handle, ". Possibly this worker (\"",
                           worker_.task(), "\") just restarted."));
}

void WorkerService::register_graph(Bytes request, const ReplyDone& done) {
  proto::RegisterGraphRequest message;
  read_message(request, message);
  const auto owner = session(message.session_handle, message.create_worker_session_called);
  proto::RegisterGraphResponse response;
  response.graph_handle =
      owner->add_graph(read_registered_graph(message.graph_def, owner->runtime()));
  done({}, write_message(response));
}

void WorkerService::deregister_graph(Bytes request, const ReplyDone& done) {
  proto::DeregisterGraphRequest message;
  read_message(request, message);
  const auto owner = session(message.session_handle, message.create_worker_session_called);
  if (!owner->remove_graph(message.graph_handle)) {
    throw AbortedError(cat("Graph handle is not found: ", message.graph_handle,
                           ". Possibly, this worker just restarted."));
  }
  done({}, {});
}

void WorkerService::run_graph(Bytes request, const CallContext& context, ReplyDone done) {
  // What an answer needs, whenever it is given.
  struct Call {
    Bytes request;
    proto::RunGraphRequest message;
    ReplyDone done;
    CancellationCallback cancelled;
    std::shared_ptr<WorkerStep> step;
    std::atomic<int> open{1};
    Mutex mutex;
    std::exception_ptr error TANDEM_GUARDED_BY(mutex);
    std::map<std::string, std::pair<Array, bool>> received TANDEM_GUARDED_BY(mutex);
    proto::StepStats stats;
    bool recorded = false;

    void fail(const std::exception_ptr& why) {
      const MutexLock lock(mutex);
      if (!error) error = why;
    }
    // One of what the answer waits for is there.
    void end_one() {
      if (open.fetch_sub(1) == 1) reply();
    }
    void reply() {
      cancelled.reset();
      Bytes body;
      proto::RunGraphReply reply;
      Status status;
      try {
        const MutexLock lock(mutex);
        if (error) std::rethrow_exception(error);
        for (const auto& [key, value] : received) {
          if (!value.second) append_named_tensor_field(body, 1, key, value.first);
        }
        if (recorded) reply.step_stats.make() = std::move(stats);
      } catch (...) {
        body = {};
        status = status_of_current();
      }
      if (!status.ok() && message.store_errors_in_response_body) {
        reply.status_code = static_cast<std::int32_t>(status.code);
        reply.status_error_message = status.message;
        status = {};
      }
      if (status.ok()) body.append(write_message(reply));
      const ReplyDone answer = std::move(done);
      answer(std::move(status), std::move(body));
      if (step) step->failure_replies.end_call();
    }
  };
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  try {
    read_message(call->request, call->message);
    const proto::RunGraphRequest& message = call->message;
    if (!run_requests_.is_new(message.request_id)) {
      throw AbortedError(cat("The same RunGraph (Worker) request was received twice. request_id: ",
                             message.request_id));
    }
    const auto owner = session(message.session_handle, message.create_worker_session_called);
    const FunctionRef function = owner->find_graph(message.graph_handle);
    if (!function) throw AbortedError(cat("Graph handle is not found: ", message.graph_handle));
    call->step = worker_.steps().find_or_create(message.step_id);
    call->step->failure_replies.begin_call();
    LocalRendezvous& rendezvous = call->step->rendezvous->local();
    for (const proto::NamedTensor& value : message.send) {
      const RendezvousKey key = RendezvousKey::parse(value.name);
      if (task_of_device(key.source_device()) != worker_.task()) {
        throw InvalidArgumentError(
            cat("Invalid rendezvous key (src): ", value.name, " @ ", worker_.task()));
      }
      rendezvous.send(key, read_tensor(value.tensor, call->request.owner()), false);
    }
    // A caller that has gone will not clean up either.
    call->cancelled = CancellationCallback(context.cancellation, [this, id = message.step_id] {
      worker_.steps().clean_up(
          id, std::make_exception_ptr(CancelledError("RunGraph was cancelled by its caller.")));
    });
    if (!call->cancelled.registered()) call->step->cancellation->cancel();

    bool starts = true, awaits_run = true;
    std::shared_ptr<Partial> partial;
    if (message.is_partial) {
      const MutexLock lock(mutex_);
      std::shared_ptr<Partial>& known = partial_runs_[message.step_id];
      starts = known == nullptr;
      if (starts) known = std::make_shared<Partial>();
      partial = known;
      awaits_run = message.is_last_partial_run;
      if (awaits_run) partial_runs_.erase(message.step_id);
    }
    for (const std::string& text : message.recv_key) {
      call->open.fetch_add(1);
      rendezvous.recv_async(RendezvousKey::parse(text), call->step->cancellation.get(),
                            [call, text](const std::exception_ptr& error, Array value, bool dead) {
                              if (error) {
                                call->fail(error);
                              } else {
                                const MutexLock lock(call->mutex);
                                call->received[text] = {std::move(value), dead};
                              }
                              call->end_one();
                            });
    }
    if (partial && awaits_run) {
      call->open.fetch_add(1);
      const MutexLock lock(partial->mutex);
      partial->waiting = [call, partial] {
        {
          const MutexLock locked(partial->mutex);
          if (partial->outcome.error) call->fail(partial->outcome.error);
        }
        call->end_one();
      };
    }
    if (starts) {
      call->recorded = message.exec_opts->record_timeline;
      if (!partial) call->open.fetch_add(1);
      worker_.run(owner, function, call->step, {}, call->recorded,
                  [call, partial](Worker::Outcome outcome) {
                    if (partial) {
                      std::function<void()> waiting;
                      {
                        const MutexLock lock(partial->mutex);
                        partial->outcome = std::move(outcome);
                        waiting = std::move(partial->waiting);
                        partial->ended = true;
                      }
                      if (waiting) waiting();
                      return;
                    }
                    if (outcome.error) call->fail(outcome.error);
                    call->stats = std::move(outcome.stats);
                    call->end_one();
                  });
    }
    if (partial && awaits_run && partial->ended) {
      std::function<void()> waiting;
      {
        const MutexLock lock(partial->mutex);
        waiting = std::move(partial->waiting);
        partial->waiting = nullptr;
      }
      if (waiting) waiting();
    }
  } catch (...) {
    call->fail(std::current_exception());
    if (call->step) call->step->rendezvous->start_abort(std::current_exception());
  }
  call->end_one();
}

void WorkerService::check_incarnation(const RendezvousKey& key) const {
  const int index = worker_.runtime().index_of(key.source_device());
  if (index < 0) {
    throw InvalidArgumentError(cat("RecvTensor asks for a value of ", key.source_device(), ", but ",
                                   worker_.task(), " has no such device."));
  }
  const std::uint64_t own =
      worker_.runtime().devices()[static_cast<std::size_t>(index)]->incarnation();
  if (own == key.source_incarnation()) return;
  throw AbortedError(
      cat("RecvTensor expects a different device incarnation: ", key.source_incarnation(), " vs. ",
          own, ". Your worker job (\"", worker_.task(),
          "\") was probably restarted. Check your worker job for the reason why it "
          "was restarted."));
}

void WorkerService::recv_tensor(Bytes request, const CallContext& context, ReplyDone done) {
  proto::RecvTensorRequest message;
  read_message(request, message);
  if (!receive_requests_.is_new(message.request_id)) {
    throw AbortedError(
        cat("The same RecvTensor (GrpcWorker) request was received twice. request_id: ",
            message.request_id));
  }
  std::optional<RendezvousKey> key;
  try {
    key = RendezvousKey::parse(message.rendezvous_key);
  } catch (const InvalidArgumentError&) {
    throw InvalidArgumentError(cat("Invalid  rendezvous key: ", message.rendezvous_key));
  }
  check_incarnation(*key);
  const std::shared_ptr<WorkerStep> step = worker_.steps().of_receive(message.step_id);
  step->rendezvous->local().recv_async(
      *key, context.cancellation.get(),
      // The context's cancellation has to stay until then.
      [this, step, cancellation = context.cancellation, done = std::move(done)](
          const std::exception_ptr& error, const Array& value, bool is_dead) {
        worker_.steps().end_receive(step->id);
        Status status;
        Bytes reply;
        try {
          if (error) std::rethrow_exception(error);
          proto::RecvTensorResponse head;
          head.send_start_micros = microseconds_now();
          head.is_dead = is_dead;
          reply = write_message(head);
          append_tensor_field(reply, 1, is_dead ? Array(DType::kFloat, Shape{0}) : value);
        } catch (...) {
          status = status_of_current();
        }
        if (status.ok()) return done({}, std::move(reply));
        if (status.details.empty())
          status.details = details_with(status.code, status.message, kDerived);
        step->failure_replies.send([done, status = std::move(status)] { done(status, {}); });
      });
}

void WorkerService::clean_up_graph(Bytes request, const ReplyDone& done) {
  proto::CleanupGraphRequest message;
  read_message(request, message);
  {
    const MutexLock lock(mutex_);
    partial_runs_.erase(message.step_id);
  }
  worker_.steps().clean_up(message.step_id);
  done({}, {});
}

void WorkerService::clean_up_all(Bytes request, const ReplyDone& done) {
  proto::CleanupAllRequest message;
  read_message(request, message);
  worker_.reset(message.container);
  done({}, {});
}

// Calls are not recorded, so there is nothing to report: masters take an empty answer.
void WorkerService::logging(Bytes request, const ReplyDone& done) {
  proto::LoggingRequest message;
  read_message(request, message);
  proto::LoggingResponse response;
  for (const std::int64_t id : message.fetch_step_id) response.step.emplace_back().step_id = id;
  done({}, write_message(response));
}

void WorkerService::step_sequence(Bytes request, const ReplyDone& done) {
  proto::GetStepSequenceRequest message;
  read_message(request, message);
  proto::GetStepSequenceResponse response;
  const MutexLock lock(mutex_);
  for (const std::int64_t key : message.graph_key) {
    const auto [at, is_new] = sequences_.try_emplace(key, 0);
    if (is_new) at->second = new_step_id();
    proto::StepSequence& sequence = response.step_sequence.emplace_back();
    sequence.graph_key = key;
    sequence.next_step_id = at->second;
  }
  done({}, write_message(response));
}

}  // namespace tandem::distribute
