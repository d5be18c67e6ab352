#include "tandem/distribute/internal/rpc/grpc/grpc_server.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/grpc/buffers.h"
#include "tandem/distribute/internal/rpc/grpc/poller.h"

namespace tandem::distribute {
namespace {

// A status travels in a header, whose size peers limit to 8 KiB.
constexpr std::size_t kMaxMessage = 3072;

grpc::Status grpc_status(Status status) {
  if (status.ok()) return grpc::Status::OK;
  if (status.message.size() > kMaxMessage) {
    status.message.resize(kMaxMessage);
    status.message += " ... [truncated]";
  }
  return {static_cast<grpc::StatusCode>(status.code), status.message, status.details};
}

class ServerCall;

// Calls that are waited for, or have come and are not over: the queue stays until there are none.
class OpenCalls {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
  }
  void remove() {
    const MutexLock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    MutexLock lock(mutex_);
    while (count_ > 0) lock.wait(none_);
  }

  // Streams end with the server, and not by themselves as calls do.
  void add_stream(const std::shared_ptr<ServerCall>& stream) {
    const MutexLock lock(mutex_);
    streams_.emplace(stream.get(), stream);
  }
  void remove_stream(const ServerCall* stream) {
    const MutexLock lock(mutex_);
    streams_.erase(stream);
  }
  void end_streams();
  bool draining() const { return draining_.load(); }

 private:
  Mutex mutex_;
  std::condition_variable none_;
  std::atomic<bool> draining_{false};
  int count_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::map<const ServerCall*, std::weak_ptr<ServerCall>> streams_ TANDEM_GUARDED_BY(mutex_);
};

// What all calls of a server share.
struct Served {
  Service& service;
  grpc::AsyncGenericService& generic;
  grpc::ServerCompletionQueue& queue;
  OpenCalls& open;
};

// One call, from waiting for it until it is over. One of a stream reads the next request while the
// answer to the one before is written, and calls the service when that is done.
class ServerCall final : public std::enable_shared_from_this<ServerCall> {
 public:
  static void wait_for_one(const Served& served) {
    const auto call = std::make_shared<ServerCall>(served);
    call->self_ = call;
    served.open.add();
    call->context_.AsyncNotifyWhenDone(&call->done_);
    served.generic.RequestCall(&call->context_, &call->stream_, &served.queue, &served.queue,
                               &call->arrived_);
  }

  explicit ServerCall(const Served& served) : served_(served) {}

  /// Ends a stream: at once if it waits for a request, else with the answer.
  void end_idle_stream() {
    if (idle_.load()) context_.TryCancel();
  }

 private:
  struct Event final : GrpcEvent {
    using Then = void (ServerCall::*)(bool ok);
    Event(ServerCall& of, Then what) : call(of), then(what) {}
    void complete(bool ok) override { (call.*then)(ok); }
    ServerCall& call;
    const Then then;
  };

  void on_arrived(bool ok) {
    if (!ok) {  // the server ends
      OpenCalls& open = served_.open;
      self_.reset();
      open.remove();
      return;
    }
    wait_for_one(served_);
    call_.peer = context_.peer();
    is_stream_ = served_.service.is_stream(context_.method());
    if (is_stream_) {
      idle_ = true;
      served_.open.add_stream(shared_from_this());
      if (served_.open.draining()) context_.TryCancel();
    }
    stream_.Read(&request_, &read_);
  }

  void on_read(bool ok) {
    // Once the answer is on its way, another thread may be done with the call.
    const auto self = shared_from_this();
    if (is_stream_) {
      has_request_ = ok;
      return end_turn();
    }
    if (!ok) return finish({Code::kInvalidArgument, "The call has no request."}, {});
    call_service();
  }

  void call_service() {
    const auto self = shared_from_this();
    Bytes request = bytes_of(request_);
    request_.Clear();
    served_.service.call(
        context_.method(), std::move(request), call_,
        [self](Status status, Bytes reply) { self->answer(std::move(status), reply); });
  }

  void answer(Status status, const Bytes& reply) {
    if (!is_stream_ || !status.ok()) return finish(std::move(status), reply);
    if (served_.open.draining()) return finish({Code::kUnavailable, "The server ends."}, {});
    turns_ = 2;
    idle_ = true;
    stream_.Write(buffer_of(reply), &written_);
    stream_.Read(&request_, &read_);
    if (served_.open.draining()) context_.TryCancel();
  }

  void on_written(bool) {
    const auto self = shared_from_this();
    end_turn();
  }
  // The answer is written and the next request is there.
  void end_turn() {
    if (turns_.fetch_sub(1) != 1) return;
    idle_ = false;
    if (!has_request_) return finish({}, {});  // the client has no more
    call_service();
  }

  void finish(Status status, const Bytes& reply) {
    if (replied_.exchange(true)) return;
    if (is_stream_) {
      stream_.Finish(grpc_status(std::move(status)), &finished_);
    } else if (status.ok()) {
      stream_.WriteAndFinish(buffer_of(reply), grpc::WriteOptions(), grpc::Status::OK, &finished_);
    } else {
      stream_.Finish(grpc_status(std::move(status)), &finished_);
    }
  }

  void on_finished(bool) { end_event(); }
  void on_done(bool) {
    if (context_.IsCancelled()) call_.cancellation->cancel();
    end_event();
  }
  void end_event() {
    if (open_events_.fetch_sub(1) != 1) return;
    OpenCalls& open = served_.open;
    if (is_stream_) open.remove_stream(this);
    self_.reset();
    open.remove();
  }

  const Served& served_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  CallContext call_;
  bool is_stream_ = false;
  bool has_request_ = false;
  std::atomic<bool> idle_{false};  // a stream: waits for a request
  std::atomic<int> turns_{1};      // read_ and, from the second request on, written_
  std::atomic<bool> replied_{false};
  std::atomic<int> open_events_{2};   // finished_ and done_
  std::shared_ptr<ServerCall> self_;  // as long as gRPC has events of it
  Event arrived_{*this, &ServerCall::on_arrived};
  Event read_{*this, &ServerCall::on_read};
  Event written_{*this, &ServerCall::on_written};
  Event finished_{*this, &ServerCall::on_finished};
  Event done_{*this, &ServerCall::on_done};
};

void OpenCalls::end_streams() {
  draining_ = true;
  std::vector<std::shared_ptr<ServerCall>> streams;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, stream] : streams_) {
      if (auto held = stream.lock()) streams.push_back(std::move(held));
    }
  }
  for (const auto& stream : streams) stream->end_idle_stream();
}

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Service& service, const std::string& address, const TlsFiles& files) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    // Two servers on one port would share its calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(address, server_credentials(files), &port_);
    builder.RegisterAsyncGenericService(&generic_);
    std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    grpc::ServerCompletionQueue& calls = *queue;
    server_ = builder.BuildAndStart();
    if (!server_) {
      queue->Shutdown();
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) continue;
      throw UnavailableError(cat("The server cannot listen on ", address,
                                 ". Is the port in use, or the address one of another machine?"));
    }
    served_.emplace(Served{service, generic_, calls, open_});
    poller_.emplace(std::move(queue));
    for (int i = 0; i < kWaitingCalls; ++i) ServerCall::wait_for_one(*served_);
  }
  ~Impl() { drain(std::chrono::milliseconds(0)); }

  int port() const { return port_; }

  void drain(std::chrono::milliseconds patience) {
    if (drained_.exchange(true)) return;
    open_.end_streams();
    server_->Shutdown(std::chrono::system_clock::now() + patience);
    open_.wait_for_none();  // they need the queue
    poller_.reset();
  }

 private:
  static constexpr int kWaitingCalls = 16;

  grpc::AsyncGenericService generic_;
  OpenCalls open_;
  std::optional<Served> served_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::optional<GrpcPoller> poller_;
  std::atomic<bool> drained_{false};
};

GrpcServer::GrpcServer(Service& service, const std::string& address, const TlsFiles& files)
    : impl_(std::make_unique<Impl>(service, address, files)) {}
GrpcServer::~GrpcServer() = default;
int GrpcServer::port() const { return impl_->port(); }
void GrpcServer::drain(std::chrono::milliseconds patience) { impl_->drain(patience); }

}  // namespace tandem::distribute
