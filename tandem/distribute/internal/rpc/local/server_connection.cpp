#include "tandem/distribute/internal/rpc/local/server_connection.h"

#include <atomic>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/local/reply.h"

namespace tandem::distribute {
namespace {

// Nanoseconds; a call that has more is ended by its caller alone.
constexpr std::uint64_t kLongestTimeout = std::uint64_t{1} << 60;

}  // namespace

ServedCalls::ServedCalls(Service& service, LocalLoop& loop)
    : service_(service), other_(loop.time_of("server")) {
  for (const std::string& method : service.unary_methods())
    times_.emplace(method, loop.time_of(cat("server ", method)));
}

HandlingTime& ServedCalls::time_of(const std::string& method) const {
  const auto found = times_.find(method);
  return found == times_.end() ? other_ : found->second.get();
}

void ServedCalls::add(const std::shared_ptr<ServerConnection>& connection) {
  const MutexLock lock(mutex_);
  connections_.emplace(connection.get(), connection);
}

void ServedCalls::remove(const ServerConnection* connection) {
  std::shared_ptr<ServerConnection> removed;  // may end with this, without the lock
  const MutexLock lock(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  removed = std::move(found->second);
  connections_.erase(found);
}

std::vector<std::shared_ptr<ServerConnection>> ServedCalls::connections() const {
  std::vector<std::shared_ptr<ServerConnection>> all;
  const MutexLock lock(mutex_);
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

bool ServedCalls::begin_call() {
  const MutexLock lock(mutex_);
  if (refuses_) return false;
  ++open_calls_;
  return true;
}

void ServedCalls::end_call() {
  const MutexLock lock(mutex_);
  if (--open_calls_ == 0) none_open_.notify_all();
}

bool ServedCalls::refuse_calls() {
  const MutexLock lock(mutex_);
  return !std::exchange(refuses_, true);
}

bool ServedCalls::wait_for_calls(std::chrono::steady_clock::time_point until) {
  MutexLock lock(mutex_);
  while (open_calls_ > 0 && std::chrono::steady_clock::now() < until)
    lock.wait_until(none_open_, until);
  return open_calls_ == 0;
}

// One call, from when it has come until it is answered.
struct ServerConnection::Call {
  explicit Call(Frame came) : frame(std::move(came)) {}
  Frame frame;
  CallContext context;
  LocalLoop::Timer timer = 0;
  std::atomic<bool> replied{false};  // by the service
  std::atomic<bool> sent{false};
};

ServerConnection::ServerConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop,
                                   std::shared_ptr<ServedCalls> served)
    : LocalConnection(std::move(socket), std::move(loop)),
      served_(std::move(served)),
      peer_(describe_peer(descriptor())) {
  this->loop().num_connections().fetch_add(1);
}

ServerConnection::~ServerConnection() { loop().num_connections().fetch_sub(1); }

std::shared_ptr<ServerConnection> ServerConnection::self() {
  return std::static_pointer_cast<ServerConnection>(shared_from_this());
}

void ServerConnection::on_frame(Frame frame) {
  if (frame.head.kind == FrameHeader::kCall) return begin(std::move(frame));
  if (frame.head.kind != FrameHeader::kCancel) return;
  std::shared_ptr<Cancellation> cancellation;
  {
    const MutexLock lock(mutex_);
    const auto found = calls_.find(frame.head.call);
    if (found != calls_.end()) cancellation = found->second;
  }
  if (cancellation) loop().post([cancellation] { cancellation->cancel(); });
}

bool ServerConnection::add(std::uint64_t call, const std::shared_ptr<Cancellation>& cancellation) {
  const MutexLock lock(mutex_);
  return calls_.emplace(call, cancellation).second;
}

void ServerConnection::erase(std::uint64_t call) {
  const MutexLock lock(mutex_);
  calls_.erase(call);
}

void ServerConnection::begin(Frame frame) {
  const std::uint64_t id = frame.head.call;
  const auto call = std::make_shared<Call>(std::move(frame));
  // Known before it has begun, so that a drain that waits for it can cancel it.
  const bool is_new = add(id, call->context.cancellation);
  if (!is_new || !served_->begin_call()) {
    if (is_new) erase(id);
    send({.kind = FrameHeader::kRefused, .call = id});
    return;
  }
  call->context.peer = peer_;
  const std::uint64_t timeout = call->frame.head.number;
  if (timeout > 0 && timeout < kLongestTimeout) {
    const auto expire = [call = std::weak_ptr(call), connection = std::weak_ptr(self())] {
      const std::shared_ptr<Call> expired = call.lock();
      const std::shared_ptr<ServerConnection> held = connection.lock();
      if (expired && held) held->expire(*expired);
    };
    call->timer = loop().at(LocalLoop::Clock::now() + std::chrono::nanoseconds(timeout), expire);
  }
  loop().num_calls().fetch_add(1, std::memory_order_relaxed);
  loop().post(served_->time_of(call->frame.text), [self = self(), call] { self->run(call); });
}

void ServerConnection::run(const std::shared_ptr<Call>& call) {
  served_->service().call(call->frame.text, std::exchange(call->frame.body, {}), call->context,
                          [self = self(), call](const Status& status, const Bytes& body) {
                            self->reply(*call, status, body);
                          });
}

void ServerConnection::reply(Call& call, const Status& status, const Bytes& body) {
  if (call.replied.exchange(true)) return;
  const std::uint64_t id = call.frame.head.call;
  loop().cancel(call.timer);
  erase(id);
  send_reply(call, status, body);
  served_->end_call();
}

void ServerConnection::send_reply(Call& call, const Status& status, const Bytes& body) {
  if (call.sent.exchange(true)) return;
  FrameHeader head{.kind = FrameHeader::kReply, .call = call.frame.head.call};
  if (status.ok()) {
    send(head, {}, body);
  } else {
    const std::string text = text_of_reply(status, head);
    send(head, text);
  }
}

// What the service makes of the cancellation is no answer to a call whose time is over.
void ServerConnection::expire(Call& call) {
  send_reply(call, {Code::kDeadlineExceeded, kDeadlineExceededCall}, {});
  call.context.cancellation->cancel();
}

void ServerConnection::cancel_calls() {
  std::vector<std::shared_ptr<Cancellation>> calls;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, cancellation] : calls_) calls.push_back(cancellation);
  }
  for (const auto& cancellation : calls) cancellation->cancel();
}

// The caller has gone.
void ServerConnection::on_end() {
  loop().post([self = self()] {
    self->cancel_calls();
    self->served_->remove(self.get());
  });
}

}  // namespace tandem::distribute
