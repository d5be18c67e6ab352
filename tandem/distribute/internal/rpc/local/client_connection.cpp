#include "tandem/distribute/internal/rpc/local/client_connection.h"

#include <utility>

#include "tandem/distribute/internal/rpc/local/reply.h"

namespace tandem::distribute {

// A call that has not been answered.
struct ClientConnection::Pending {
  HandlingTime& time;
  ReplyDone done;
  CancellationCallback cancelled = {};
  std::optional<LocalLoop::Clock::time_point> deadline = {};
  LocalLoop::Timer timer = 0;
  // What is needed to make it again on the fallback.
  std::string method = {};
  std::optional<Bytes> request = {};
  CallOptions options = {};
};

ClientConnection::ClientConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop,
                                   std::shared_ptr<Channel> fallback)
    : LocalConnection(std::move(socket), std::move(loop)), fallback_(std::move(fallback)) {}

bool ClientConnection::takes_calls() const {
  const MutexLock lock(mutex_);
  return takes_calls_;
}

std::optional<LocalLoop::Clock::time_point> ClientConnection::failed_at() const {
  const MutexLock lock(mutex_);
  return failed_at_;
}

bool ClientConnection::call(const char* method, Bytes& request, const CallOptions& options,
                            ReplyDone& done) {
  const auto call = std::make_shared<Pending>(Pending{loop().time_of(method), std::move(done)});
  std::uint64_t id = 0;
  {
    const MutexLock lock(mutex_);
    id = ++last_call_;
  }
  const auto self = std::static_pointer_cast<ClientConnection>(shared_from_this());
  if (options.wait_for_ready) {
    call->method = method;
    call->request = request;
    call->options = options;
  }
  const auto end_later = [weak = std::weak_ptr(self), id](Code code, const char* message) {
    if (const auto connection = weak.lock()) connection->end(id, code, message);
  };
  if (options.cancellation) {
    call->cancelled = CancellationCallback(
        options.cancellation, [end_later] { end_later(Code::kCancelled, kCancelledCall); });
  }
  if (options.timeout) {
    call->deadline = LocalLoop::Clock::now() + *options.timeout;
    call->timer = loop().at(*call->deadline, [end_later] {
      end_later(Code::kDeadlineExceeded, kDeadlineExceededCall);
    });
  }
  const auto restore = [&] {
    call->cancelled.reset();
    loop().cancel(call->timer);
    done = std::move(call->done);
    return false;
  };
  bool takes_calls = false;
  {
    const MutexLock lock(mutex_);
    takes_calls = takes_calls_;
    if (takes_calls) pending_.emplace(id, call);
  }
  if (!takes_calls) return restore();
  if (!send(head_of_call(id, options), method, request) && take(id)) return restore();
  // These may have been too early for the call to be found.
  if (options.cancellation && options.cancellation->cancelled())
    end(id, Code::kCancelled, kCancelledCall);
  if (call->deadline && *call->deadline <= LocalLoop::Clock::now())
    end(id, Code::kDeadlineExceeded, kDeadlineExceededCall);
  return true;
}

std::shared_ptr<ClientConnection::Pending> ClientConnection::take(std::uint64_t call) {
  const MutexLock lock(mutex_);
  const auto found = pending_.find(call);
  if (found == pending_.end()) return nullptr;
  std::shared_ptr<Pending> taken = std::move(found->second);
  pending_.erase(found);
  return taken;
}

void ClientConnection::finish(const std::shared_ptr<Pending>& call, Status status, Bytes reply) {
  call->cancelled.reset();
  const ReplyDone done = std::move(call->done);
  done(std::move(status), std::move(reply));
}

void ClientConnection::end(std::uint64_t call, Code code, const char* message) {
  const std::shared_ptr<Pending> ended = take(call);
  if (!ended) return;
  loop().cancel(ended->timer);
  send({.kind = FrameHeader::kCancel, .call = call});
  finish(ended, {code, message}, {});
}

void ClientConnection::retry_on_fallback(const std::shared_ptr<Pending>& call) {
  if (!call->request) return finish(call, {Code::kUnavailable, kServerEnds}, {});
  call->cancelled.reset();
  CallOptions options = std::move(call->options);
  if (call->deadline) options.timeout = *call->deadline - LocalLoop::Clock::now();
  fallback_->call(call->method.c_str(), *std::move(call->request), options, std::move(call->done));
}

void ClientConnection::on_frame(Frame frame) {
  if (frame.head.kind == FrameHeader::kGoAway) {
    const MutexLock lock(mutex_);
    takes_calls_ = false;
    is_leaving_ = true;
    return;
  }
  const bool is_refused = frame.head.kind == FrameHeader::kRefused;
  if (!is_refused && frame.head.kind != FrameHeader::kReply) return;
  std::shared_ptr<Pending> call = take(frame.head.call);
  if (!call) return;  // was cancelled
  loop().cancel(call->timer);
  if (is_refused) {
    const auto self = std::static_pointer_cast<ClientConnection>(shared_from_this());
    return loop().post([self, call = std::move(call)] { self->retry_on_fallback(call); });
  }
  HandlingTime& time = call->time;
  const auto answer = std::make_shared<Frame>(std::move(frame));
  loop().post(time, [call = std::move(call), answer] {
    finish(call, status_of_reply(*answer), std::move(answer->body));
  });
}

void ClientConnection::end_all(Code code, const char* message) {
  std::map<std::uint64_t, std::shared_ptr<Pending>> ended;
  {
    const MutexLock lock(mutex_);
    takes_calls_ = false;
    ended.swap(pending_);
  }
  for (const auto& [id, call] : ended) {
    loop().cancel(call->timer);
    finish(call, {code, message}, {});
  }
}

void ClientConnection::on_end() {
  const auto self = std::static_pointer_cast<ClientConnection>(shared_from_this());
  {
    const MutexLock lock(mutex_);
    takes_calls_ = false;
    if (!is_leaving_ || has_failed()) failed_at_ = LocalLoop::Clock::now();
  }
  loop().post([self] { self->end_all(Code::kUnavailable, kSocketClosed); });
}

void ClientConnection::cancel_all() {
  close();
  end_all(Code::kCancelled, kCancelledCall);
}

}  // namespace tandem::distribute
