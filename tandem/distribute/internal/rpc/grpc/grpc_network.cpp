#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"

#include <atomic>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include "tandem/distribute/internal/rpc/grpc/buffers.h"

namespace tandem::distribute {
namespace {

// One call, from its start until its answer.
class ClientCall final : public GrpcEvent {
 public:
  static void start(grpc::GenericStub& stub, grpc::CompletionQueue& queue,
                    const std::shared_ptr<Cancellation>& closing, const char* method,
                    const Bytes& request, const CallOptions& options, ReplyDone done) {
    if (closing->cancelled()) return done({Code::kCancelled, "This task ends."}, {});
    auto* call = new ClientCall(std::move(done));  // owned by the queue until `complete`
    if (options.timeout)
      call->context_.set_deadline(
          std::chrono::system_clock::now() +
          std::chrono::duration_cast<std::chrono::system_clock::duration>(*options.timeout));
    call->context_.set_wait_for_ready(options.wait_for_ready);
    if (options.cancellation) {
      call->cancel_ =
          CancellationCallback(options.cancellation, [call] { call->context_.TryCancel(); });
      if (!call->cancel_.registered()) call->context_.TryCancel();
    }
    call->closing_ = CancellationCallback(closing, [call] { call->context_.TryCancel(); });
    call->reader_ = stub.PrepareUnaryCall(&call->context_, method, buffer_of(request), &queue);
    call->reader_->StartCall();
    call->reader_->Finish(&call->reply_, &call->status_, call);
  }

  void complete(bool) override {
    const std::unique_ptr<ClientCall> self(this);
    cancel_.reset();
    closing_.reset();
    Status status;
    Bytes reply;
    if (status_.ok()) {
      reply = bytes_of(reply_);
    } else {
      status = {static_cast<Code>(status_.error_code()), status_.error_message(),
                status_.error_details()};
    }
    const ReplyDone done = std::move(done_);
    done(std::move(status), std::move(reply));
  }

 private:
  explicit ClientCall(ReplyDone done) : done_(std::move(done)) {}

  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  CancellationCallback cancel_, closing_;
  ReplyDone done_;
};

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
              std::shared_ptr<Cancellation> closing)
      : stub_(std::move(channel)), queue_(queue), closing_(std::move(closing)) {}
  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    ClientCall::start(stub_, queue_, closing_, method, request, options, std::move(done));
  }

 private:
  grpc::GenericStub stub_;
  grpc::CompletionQueue& queue_;
  const std::shared_ptr<Cancellation> closing_;
};

}  // namespace

GrpcNetwork::GrpcNetwork(const TlsFiles& files)
    : credentials_(channel_credentials(files)),
      poller_(std::make_unique<GrpcPoller>(std::make_unique<grpc::CompletionQueue>())) {}

GrpcNetwork::~GrpcNetwork() {
  closing_->cancel();
  poller_.reset();
}

std::shared_ptr<Channel> GrpcNetwork::channel(const std::string& address) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Channel>& known = channels_[address];
  if (known) return known;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Peers are addresses of a cluster, and come back soon when they are started again.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  known = std::make_shared<GrpcChannel>(grpc::CreateCustomChannel(address, credentials_, arguments),
                                        poller_->queue(), closing_);
  return known;
}

}  // namespace tandem::distribute
