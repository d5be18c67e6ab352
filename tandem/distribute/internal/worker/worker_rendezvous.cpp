#include "tandem/distribute/internal/worker/worker_rendezvous.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {
namespace {
constexpr const char* kRecvTensor = "/tensorflow.WorkerService/RecvTensor";
constexpr std::string_view kElsewhere = "Additional GRPC error information from remote target ";
}  // namespace

WorkerRendezvous::WorkerRendezvous(std::int64_t step, std::string task, const Peers& peers,
                                   std::shared_ptr<Cancellation> cancellation)
    : step_(step),
      task_(std::move(task)),
      peers_(peers),
      cancellation_(std::move(cancellation)),
      local_(make_ref<LocalRendezvous>()) {}

void WorkerRendezvous::send(const RendezvousKey& key, Array value, bool is_dead) {
  local_->send(key, std::move(value), is_dead);
}

void WorkerRendezvous::recv_async(const RendezvousKey& key, const Cancellation* cancellation,
                                  RecvDone done) {
  const std::string_view source = task_of_device(key.source_device());
  if (source == task_) return local_->recv_async(key, cancellation, std::move(done));
  if (Channel* channel = channel_to(source)) return recv_remote(*channel, key, std::move(done));
  done(std::make_exception_ptr(InvalidArgumentError(
           cat("'", key.text(), "' comes from ", source, ", which is no task of the cluster."))),
       {}, false);
}

void WorkerRendezvous::add_peers(std::shared_ptr<const Peers> peers) {
  const MutexLock lock(mutex_);
  if (more_peers_.empty() || more_peers_.back() != peers) more_peers_.push_back(std::move(peers));
}

Channel* WorkerRendezvous::channel_to(std::string_view task) {
  {
    const MutexLock lock(mutex_);
    for (auto peers = more_peers_.rbegin(); peers != more_peers_.rend(); ++peers) {
      if (Channel* channel = (*peers)->find(task)) return channel;
    }
  }
  return peers_.find(task);
}

void WorkerRendezvous::recv_remote(Channel& channel, const RendezvousKey& key, RecvDone done) {
  if (const std::exception_ptr error = local_->error()) return done(error, {}, false);
  proto::RecvTensorRequest request;
  request.step_id = step_;
  request.rendezvous_key = key.text();
  request.request_id = new_request_id();
  channel.call(kRecvTensor, write_message(request), {.cancellation = cancellation_},
               [self = Ref<WorkerRendezvous>(this), source = std::string(key.source_device()),
                done = std::move(done)](const Status& status, Bytes reply) {
                 if (!status.ok()) {
                   // The reason why the step was aborted says more than that the call was
                   // cancelled.
                   std::exception_ptr error = self->local_->error();
                   if (!error) error = error_of_peer(status, task_of_device(source), kRecvTensor);
                   return done(error, {}, false);
                 }
                 Array value;
                 bool is_dead = false;
                 try {
                   proto::RecvTensorResponse response;
                   read_message(reply, response);
                   is_dead = response.is_dead;
                   if (!is_dead) value = read_tensor(response.tensor, reply.owner());
                 } catch (...) {
                   return done(std::current_exception(), {}, false);
                 }
                 done(nullptr, std::move(value), is_dead);
               });
}

void WorkerRendezvous::start_abort(std::exception_ptr error) {
  const Code code = code_of(error);
  local_->start_abort(std::move(error));
  cancellation_->cancel(code == Code::kDeadlineExceeded ? code : Code::kCancelled);
}

std::exception_ptr error_of_peer(const Status& status, std::string_view task, const char* method) {
  Status here = status;
  here.message += cat("\n", kElsewhere, task, " while calling ", method,
                      ":\n:UNKNOWN:Error received from peer  {grpc_message:\"", status.message,
                      "\", grpc_status:", static_cast<int>(status.code), "}");
  return here.error();
}

bool began_elsewhere(std::string_view message) {
  return message.find(kElsewhere) != std::string_view::npos;
}

}  // namespace tandem::distribute
