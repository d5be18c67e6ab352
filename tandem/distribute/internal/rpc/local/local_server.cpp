#include "tandem/distribute/internal/rpc/local/local_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/local/server_connection.h"

namespace tandem::distribute {
namespace {

constexpr auto kTimeForAnswers = std::chrono::milliseconds(100);

}  // namespace

// Takes connections.
class LocalServer::Listener final : public EventSource,
                                    public std::enable_shared_from_this<Listener> {
 public:
  Listener(Descriptor socket, std::shared_ptr<LocalLoop> loop, std::shared_ptr<ServedCalls> served)
      : socket_(std::move(socket)), loop_(std::move(loop)), served_(std::move(served)) {}

  int descriptor() const override { return socket_.number(); }

  void on_ready() override {
    const MutexLock lock(mutex_);
    if (closed_) return;
    Descriptor peer = accept_from(socket_);
    if (peer.is_open()) {
      const auto connection = std::make_shared<ServerConnection>(std::move(peer), loop_, served_);
      served_->add(connection);
      if (!connection->start()) served_->remove(connection.get());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      // Until others close theirs; clients use gRPC meanwhile, or wait.
      loop_->at(LocalLoop::Clock::now() + kPause, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->arm();
      });
      return;
    }
    loop_->arm(*this, false);
  }

  void close() {
    loop_->remove(*this);
    const MutexLock lock(mutex_);
    closed_ = true;
    // A child that was forked may hold a copy, which must not go on taking connections.
    ::shutdown(socket_.number(), SHUT_RDWR);
    socket_ = {};
  }

 private:
  static constexpr auto kPause = std::chrono::milliseconds(100);

  void arm() {
    const MutexLock lock(mutex_);
    if (!closed_) loop_->arm(*this, false);
  }

  Descriptor socket_;  // closed under the lock, and read without it by the loop before that
  const std::shared_ptr<LocalLoop> loop_;
  const std::shared_ptr<ServedCalls> served_;
  Mutex mutex_;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

LocalServer::LocalServer(Service& service, const std::string& name, std::shared_ptr<LocalLoop> loop)
    : served_(std::make_shared<ServedCalls>(service, *loop)) {
  Descriptor socket = listen_at(name);
  if (!socket.is_open())
    throw UnavailableError(cat("No local connections can be had at \"", name, "\"."));
  listener_ = std::make_shared<Listener>(std::move(socket), loop, served_);
  if (!loop->add(listener_)) throw UnavailableError("The loop of local connections has ended.");
}

LocalServer::~LocalServer() { drain(std::chrono::milliseconds(0)); }

void LocalServer::stop_accepting() {
  if (!served_->refuse_calls()) return;
  listener_->close();
  for (const auto& connection : served_->connections())
    connection->send({.kind = FrameHeader::kGoAway});
}

void LocalServer::drain(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  stop_accepting();
  if (!served_->wait_for_calls(until)) {
    for (const auto& connection : served_->connections()) connection->cancel_calls();
    served_->wait_for_calls(Clock::time_point::max());
  }
  // The last answers are on their way to clients that take them, for which there is time even where
  // the calls have used it up.
  const auto last = std::max(until, Clock::now() + kTimeForAnswers);
  for (const auto& connection : served_->connections()) {
    while (connection->has_unsent() && Clock::now() < last)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    connection->close();
    served_->remove(connection.get());
  }
}

}  // namespace tandem::distribute
