#include "tandem/distribute/internal/master/master_service.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/master/run_call.h"
#include "tandem/distribute/internal/wire/error_text.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

StepSignature signature_of(const std::vector<std::string>& feeds,
                           const std::vector<std::string>& fetches,
                           const std::vector<std::string>& targets) {
  StepSignature signature;
  for (const std::string& name : feeds) signature.feeds.push_back(tensor_name(name));
  for (const std::string& name : fetches) signature.fetches.push_back(tensor_name(name));
  signature.targets = targets;
  return signature;
}

// Answers with the message, or with what went wrong.
template <class Make>
void reply_with(const ReplyDone& done, const std::exception_ptr& error, Make make) {
  Bytes bytes;
  try {
    if (error) std::rethrow_exception(error);
    bytes = write_message(make());
  } catch (...) {
    Status status = Status::of(std::current_exception());
    status.message = with_node_lines(status.message);
    return done(std::move(status), {});
  }
  done({}, std::move(bytes));
}

}  // namespace

void MasterService::add_to(MethodTable& methods) {
  using Handler = void (MasterService::*)(Bytes, const CallContext&, const ReplyDone&);
  const auto add = [&](const char* name, Handler handler) {
    methods.add(cat("/tensorflow.MasterService/", name),
                [this, handler](Bytes request, const CallContext& context, const ReplyDone& done) {
                  try {
                    (this->*handler)(std::move(request), context, done);
                  } catch (...) {
                    Status status = Status::of(std::current_exception());
                    status.message = with_node_lines(status.message);
                    done(std::move(status), {});
                  }
                });
  };
  add("CreateSession", &MasterService::create_session);
  add("ExtendSession", &MasterService::extend_session);
  add("CloseSession", &MasterService::close_session);
  add("ListDevices", &MasterService::list_devices);
  add("Reset", &MasterService::reset);
  add("RunStep", &MasterService::run_step);
  add("PartialRunSetup", &MasterService::set_up_partial_run);
  add("MakeCallable", &MasterService::make_callable);
  add("RunCallable", &MasterService::run_callable);
  add("ReleaseCallable", &MasterService::release_callable);
}

void MasterService::create_session(Bytes request, const CallContext& context,
                                   const ReplyDone& done) {
  proto::CreateSessionRequest message;
  read_message(request, message);
  master_.create_session(
      {message.graph_def, message.config, request.owner(), context.cancellation},
      [done](const std::exception_ptr& error, const std::shared_ptr<MasterSession>& session) {
        reply_with(done, error, [&] {
          proto::CreateSessionResponse response;
          response.session_handle = session->handle();
          return response;
        });
      });
}

void MasterService::extend_session(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::ExtendSessionRequest message;
  read_message(request, message);
  proto::ExtendSessionResponse response;
  response.new_graph_version = master_.find(message.session_handle)
                                   ->extend(message.graph_def, message.current_graph_version);
  done({}, write_message(response));
}

void MasterService::close_session(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::CloseSessionRequest message;
  read_message(request, message);
  master_.close_session(message.session_handle);
  done({}, {});
}

void MasterService::list_devices(Bytes request, const CallContext& context, const ReplyDone& done) {
  proto::ListDevicesRequest message;
  read_message(request, message);
  std::vector<SessionTask> tasks = master_.other_tasks();
  if (!message.session_handle.empty()) {
    try {
      tasks =
          master_.find(message.session_handle, " Possibly, this master has restarted.")->others();
    } catch (const AbortedError& error) {
      throw InvalidArgumentError(error.what());
    }
  }
  Master::devices_of(tasks, context.cancellation,
                     [this, done](const std::exception_ptr& error,
                                  const std::vector<proto::DeviceAttributes>& devices) {
                       reply_with(done, error, [&] {
                         proto::ListDevicesResponse response;
                         response.local_device = master_.worker().devices();
                         response.local_device.insert(response.local_device.end(), devices.begin(),
                                                      devices.end());
                         return response;
                       });
                     });
}

void MasterService::reset(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::ResetRequest message;
  read_message(request, message);
  master_.reset(message.container, [done] { done({}, {}); });
}

void MasterService::run_step(Bytes request, const CallContext& context, const ReplyDone& done) {
  proto::RunStepRequest message;
  read_message(request, message);
  if (!run_requests_.is_new(message.request_id)) {
    throw AbortedError(cat("The same RunStep (Master) request was received twice. request_id: ",
                           message.request_id));
  }
  std::make_shared<RunCall>(master_.find(message.session_handle), context, done)
      ->start(std::move(request), std::move(message));
}

void MasterService::set_up_partial_run(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::PartialRunSetupRequest message;
  read_message(request, message);
  const auto session = master_.find(message.session_handle);
  StepSignature signature = signature_of(message.feed, message.fetch, message.target);
  signature.partial = true;
  session->prepare(std::move(signature), [session, done](const std::exception_ptr& error,
                                                         const std::shared_ptr<StepPlan>& plan) {
    reply_with(done, error, [&] {
      const auto run = std::make_shared<MasterSession::PartialRun>();
      {
        const MutexLock lock(run->mutex);
        run->unfed.insert(plan->signature().feeds.begin(), plan->signature().feeds.end());
        run->unfetched.insert(plan->signature().fetches.begin(), plan->signature().fetches.end());
      }
      run->step = session->begin(plan, {});
      proto::PartialRunSetupResponse response;
      response.partial_run_handle = session->add_partial_run(run);
      run->step->start({}, [session, run](ActiveStep::Outcome outcome) {
        session->end(run->step);
        std::function<void(const ActiveStep::Outcome&)> last;
        {
          const MutexLock lock(run->mutex);
          run->outcome = outcome;
          last = std::move(run->last);
        }
        if (last) last(outcome);
      });
      return response;
    });
  });
}

void MasterService::make_callable(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::MakeCallableRequest message;
  read_message(request, message);
  const auto session = master_.find(message.session_handle);
  StepSignature signature =
      signature_of(message.options->feed, message.options->fetch, message.options->target);
  for (const proto::TensorConnection& connection : message.options->tensor_connection) {
    signature.connections.emplace_back(tensor_name(connection.from_tensor),
                                       tensor_name(connection.to_tensor));
  }
  session->prepare(std::move(signature), [session, done](const std::exception_ptr& error,
                                                         const std::shared_ptr<StepPlan>& plan) {
    reply_with(done, error, [&] {
      proto::MakeCallableResponse response;
      response.handle = session->add_callable(plan);
      return response;
    });
  });
}

void MasterService::run_callable(Bytes request, const CallContext& context, const ReplyDone& done) {
  proto::RunCallableRequest message;
  read_message(request, message);
  std::make_shared<RunCall>(master_.find(message.session_handle), context, done)
      ->start_callable(std::move(request), message);
}

void MasterService::release_callable(Bytes request, const CallContext&, const ReplyDone& done) {
  proto::ReleaseCallableRequest message;
  read_message(request, message);
  master_.find(message.session_handle)->release_callable(message.handle);
  done({}, {});
}

}  // namespace tandem::distribute
