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
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/async_unary_call.h>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/grpc/buffers.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_poller.h"
#include "tandem/distribute/internal/rpc/grpc/tag.h"

namespace tandem::distribute {
namespace {

grpc::Status grpc_status(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code), status.message_to_send(), status.details};
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

// The unary methods of a service, by which gRPC reads a call's request before it says that a call
// has come.
class UnaryMethods final : public grpc::Service {
 public:
  struct Method {
    std::string name;
    HandlingTime time;
  };
  explicit UnaryMethods(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      methods_.push_back(std::make_unique<Method>());
      methods_.back()->name = name;
      auto method = std::make_unique<grpc::internal::RpcServiceMethod>(
          methods_.back()->name.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, nullptr);
      AddMethod(method.release());  // the base class's
      MarkMethodAsync(static_cast<int>(methods_.size()) - 1);
    }
  }
  std::size_t size() const { return methods_.size(); }
  Method& method(std::size_t index) const { return *methods_[index]; }
  void request_call(std::size_t index, grpc::ServerContext& context, grpc::ByteBuffer& request,
                    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>& writer,
                    grpc::ServerCompletionQueue& queue, PollerEvent& arrived) {
    RequestAsyncUnary(static_cast<int>(index), &context, &request, &writer, &queue, &queue,
                      tag_of(arrived));
  }

 private:
  std::vector<std::unique_ptr<Method>> methods_;
};

// What all calls of a server share.
struct Served {
  Service& service;
  UnaryMethods& unary;
  grpc::AsyncGenericService& generic;
  grpc::ServerCompletionQueue& queue;
  OpenCalls& open;
  HandlingTime& bookkeeping;
  HandlingTime& streams;
};

// An event of gRPC's that a member function of its call handles.
template <class Call>
class CallEvent final : public PollerEvent {
 public:
  using Then = void (Call::*)(bool ok);
  CallEvent(HandlingTime& time, Call& call, Then then)
      : PollerEvent(time), call_(call), then_(then) {}
  void complete(bool ok) override { (call_.*then_)(ok); }

 private:
  Call& call_;
  const Then then_;
};

// One call of a unary method, from waiting for it until it is over.
class UnaryCall final : public std::enable_shared_from_this<UnaryCall> {
 public:
  static void wait_for_one(const Served& served, std::size_t method) {
    const auto call = std::make_shared<UnaryCall>(served, method);
    call->self_ = call;
    served.open.add();
    call->context_.AsyncNotifyWhenDone(tag_of(call->done_));
    served.unary.request_call(method, call->context_, call->request_, call->writer_, served.queue,
                              call->arrived_);
  }

  UnaryCall(const Served& served, std::size_t method)
      : served_(served),
        method_(method),
        arrived_(served.unary.method(method).time, *this, &UnaryCall::on_arrived),
        finished_(served.bookkeeping, *this, &UnaryCall::on_finished),
        done_(served.bookkeeping, *this, &UnaryCall::on_done) {}

 private:
  using Event = CallEvent<UnaryCall>;

  void on_arrived(bool ok) {
    if (!ok) {  // the server ends
      OpenCalls& open = served_.open;
      self_.reset();
      open.remove();
      return;
    }
    // Once the answer is on its way, another thread may be done with the call.
    const auto self = shared_from_this();
    wait_for_one(served_, method_);
    call_.peer = context_.peer();
    Bytes request = bytes_of(request_);
    request_.Clear();
    served_.service.call(
        served_.unary.method(method_).name, std::move(request), call_,
        [self](Status status, Bytes reply) { self->finish(std::move(status), reply); });
  }

  void finish(Status status, const Bytes& reply) {
    if (replied_.exchange(true)) return;
    if (status.ok()) {
      writer_.Finish(buffer_of(reply), grpc::Status::OK, tag_of(finished_));
    } else {
      writer_.FinishWithError(grpc_status(std::move(status)), tag_of(finished_));
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
    self_.reset();
    open.remove();
  }

  const Served& served_;
  const std::size_t method_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  grpc::ByteBuffer request_;
  CallContext call_;
  std::atomic<bool> replied_{false};
  std::atomic<int> open_events_{2};  // finished_ and done_
  std::shared_ptr<UnaryCall> self_;  // as long as gRPC has events of it
  Event arrived_, finished_, done_;
};

// A stream, or a call of an unknown method, from waiting for it until it is over. A stream
// reads the next request while the answer to the one before is written, and calls the service when
// that is done.
class ServerCall final : public std::enable_shared_from_this<ServerCall> {
 public:
  static void wait_for_one(const Served& served) {
    const auto call = std::make_shared<ServerCall>(served);
    call->self_ = call;
    served.open.add();
    call->context_.AsyncNotifyWhenDone(tag_of(call->done_));
    served.generic.RequestCall(&call->context_, &call->stream_, &served.queue, &served.queue,
                               tag_of(call->arrived_));
  }

  explicit ServerCall(const Served& served) : served_(served) {}

  /// Ends a stream: at once if it waits for a request, else with the answer.
  void end_idle_stream() {
    if (idle_.load()) context_.TryCancel();
  }

 private:
  using Event = CallEvent<ServerCall>;

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
    stream_.Read(&request_, tag_of(read_));
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
    stream_.Write(buffer_of(reply), tag_of(written_));
    stream_.Read(&request_, tag_of(read_));
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
      stream_.Finish(grpc_status(std::move(status)), tag_of(finished_));
    } else if (status.ok()) {
      stream_.WriteAndFinish(buffer_of(reply), grpc::WriteOptions(), grpc::Status::OK,
                             tag_of(finished_));
    } else {
      stream_.Finish(grpc_status(std::move(status)), tag_of(finished_));
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
  Event arrived_{served_.bookkeeping, *this, &ServerCall::on_arrived};
  Event read_{served_.streams, *this, &ServerCall::on_read};
  Event written_{served_.streams, *this, &ServerCall::on_written};
  Event finished_{served_.bookkeeping, *this, &ServerCall::on_finished};
  Event done_{served_.bookkeeping, *this, &ServerCall::on_done};
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
  Impl(Service& service, const std::string& address, const TlsFiles& files)
      : unary_(service.unary_methods()) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    // Two servers on one port would share its calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(address, server_credentials(files), &port_);
    builder.RegisterService(&unary_);
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
    served_.emplace(Served{service, unary_, generic_, calls, open_, bookkeeping_, streams_});
    poller_.emplace(std::move(queue));
    for (int i = 0; i < kWaitingStreams; ++i) ServerCall::wait_for_one(*served_);
    for (std::size_t m = 0; m < unary_.size(); ++m) UnaryCall::wait_for_one(*served_, m);
  }
  ~Impl() { drain(std::chrono::milliseconds(0)); }

  int port() const { return port_; }

  void lend_poller(GrpcNetwork& network) {
    lent_to_ = &network;
    network.use_poller(*poller_);
  }

  void drain(std::chrono::milliseconds patience) {
    if (drained_.exchange(true)) return;
    open_.end_streams();
    server_->Shutdown(std::chrono::system_clock::now() + patience);
    open_.wait_for_none();  // they need the queue
    if (lent_to_) lent_to_->use_own_poller();
    poller_.reset();
  }

 private:
  static constexpr int kWaitingStreams = 4;

  HandlingTime bookkeeping_, streams_;
  UnaryMethods unary_;
  grpc::AsyncGenericService generic_;
  OpenCalls open_;
  std::optional<Served> served_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::optional<GrpcPoller> poller_;
  GrpcNetwork* lent_to_ = nullptr;
  std::atomic<bool> drained_{false};
};

GrpcServer::GrpcServer(Service& service, const std::string& address, const TlsFiles& files)
    : impl_(std::make_unique<Impl>(service, address, files)) {}
GrpcServer::~GrpcServer() = default;
int GrpcServer::port() const { return impl_->port(); }
void GrpcServer::lend_poller(GrpcNetwork& network) { impl_->lend_poller(network); }
void GrpcServer::drain(std::chrono::milliseconds patience) { impl_->drain(patience); }

}  // namespace tandem::distribute
