#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"

#include <condition_variable>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include "tandem/distribute/internal/rpc/grpc/buffers.h"
#include "tandem/distribute/internal/rpc/grpc/tag.h"

namespace tandem::distribute {

// What a network's channels share, and what its calls need: queues, and who waits for them.
class GrpcNetwork::Calls {
 public:
  ~Calls() { close(); }

  const std::shared_ptr<Cancellation>& closing() const { return closing_; }

  HandlingTime& time_of(const char* method) {
    const MutexLock lock(mutex_);
    return times_[method];
  }

  // Calls `begin` with a queue that a poller waits for.
  template <class Begin>
  void begin(const Begin& begin_call) {
    grpc::CompletionQueue* queue = nullptr;
    {
      const MutexLock lock(mutex_);
      if (lent_) {
        queue = &lent_->queue();
      } else if (!closed_) {
        if (!own_) own_ = std::make_unique<GrpcPoller>(std::make_unique<grpc::CompletionQueue>());
        queue = &own_->queue();
      }
      ++beginning_;
    }
    begin_call(queue);
    const MutexLock lock(mutex_);
    if (--beginning_ == 0) none_begins_.notify_all();
  }

  // A queue for a caller that waits itself.
  std::unique_ptr<grpc::CompletionQueue> take_queue() {
    const MutexLock lock(mutex_);
    if (queues_.empty()) return std::make_unique<grpc::CompletionQueue>();
    std::unique_ptr<grpc::CompletionQueue> queue = std::move(queues_.back());
    queues_.pop_back();
    return queue;
  }
  void put_back(std::unique_ptr<grpc::CompletionQueue> queue) {
    const MutexLock lock(mutex_);
    queues_.push_back(std::move(queue));
  }

  void lend(GrpcPoller* poller) {
    MutexLock lock(mutex_);
    lent_ = poller;
    while (beginning_ > 0) lock.wait(none_begins_);
  }

  void close() {
    closing_->cancel();
    std::unique_ptr<GrpcPoller> own;
    std::vector<std::unique_ptr<grpc::CompletionQueue>> queues;
    {
      MutexLock lock(mutex_);
      closed_ = true;
      while (beginning_ > 0) lock.wait(none_begins_);
      own = std::move(own_);
      queues = std::move(queues_);
      queues_.clear();
    }
    own.reset();
    for (const auto& queue : queues) end_queue(*queue);
  }

  static void end_queue(grpc::CompletionQueue& queue) {
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) continue;
  }

 private:
  const std::shared_ptr<Cancellation> closing_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  std::condition_variable none_begins_;
  int beginning_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  GrpcPoller* lent_ TANDEM_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, HandlingTime, std::less<>> times_ TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<GrpcPoller> own_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<grpc::CompletionQueue>> queues_ TANDEM_GUARDED_BY(mutex_);
};

namespace {

// One call, from its start until its answer.
class ClientCall final : public PollerEvent {
 public:
  static void start(grpc::GenericStub& stub, grpc::CompletionQueue* queue,
                    const std::shared_ptr<Cancellation>& closing, HandlingTime& time,
                    const char* method, const Bytes& request, const CallOptions& options,
                    ReplyDone done) {
    if (!queue || closing->cancelled()) return done({Code::kCancelled, "This task ends."}, {});
    auto* call = new ClientCall(time, std::move(done));  // owned by the queue until `complete`
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
    call->reader_ = stub.PrepareUnaryCall(&call->context_, method, buffer_of(request), queue);
    call->reader_->StartCall();
    call->reader_->Finish(&call->reply_, &call->status_, tag_of(*call));
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
  ClientCall(HandlingTime& time, ReplyDone done) : PollerEvent(time), done_(std::move(done)) {}

  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  CancellationCallback cancel_, closing_;
  ReplyDone done_;
};

}  // namespace

class GrpcNetwork::ChannelTo final : public Channel {
 public:
  ChannelTo(std::shared_ptr<grpc::Channel> channel, std::shared_ptr<Calls> calls)
      : stub_(std::move(channel)), calls_(std::move(calls)) {}

  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    // What ends the call may be the last to hold this.
    const std::shared_ptr<Calls> calls = calls_;
    calls->begin([&](grpc::CompletionQueue* queue) {
      ClientCall::start(stub_, queue, calls->closing(), calls->time_of(method), method, request,
                        options, std::move(done));
    });
  }

  std::pair<Status, Bytes> call_and_wait(const char* method, Bytes request,
                                         const CallOptions& options) override {
    std::unique_ptr<grpc::CompletionQueue> queue = calls_->take_queue();
    std::optional<std::pair<Status, Bytes>> answer;
    ClientCall::start(stub_, queue.get(), calls_->closing(), calls_->time_of(method), method,
                      request, options, [&answer](Status status, Bytes reply) {
                        answer.emplace(std::move(status), std::move(reply));
                      });
    while (!answer) {
      void* tag = nullptr;
      bool ok = false;
      if (queue->Next(&tag, &ok)) event_of(tag).complete(ok);
    }
    calls_->put_back(std::move(queue));
    return *std::move(answer);
  }

 private:
  grpc::GenericStub stub_;
  const std::shared_ptr<Calls> calls_;
};

GrpcNetwork::GrpcNetwork(const TlsFiles& files)
    : credentials_(channel_credentials(files)), calls_(std::make_shared<Calls>()) {}

GrpcNetwork::~GrpcNetwork() { calls_->close(); }

void GrpcNetwork::use_poller(GrpcPoller& poller) { calls_->lend(&poller); }
void GrpcNetwork::use_own_poller() { calls_->lend(nullptr); }

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
  known = std::make_shared<ChannelTo>(grpc::CreateCustomChannel(address, credentials_, arguments),
                                      calls_);
  return known;
}

}  // namespace tandem::distribute
