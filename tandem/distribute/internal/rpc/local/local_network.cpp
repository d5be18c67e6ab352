#include "tandem/distribute/internal/rpc/local/local_network.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/distribute/internal/rpc/local/client_connection.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/local/waiting_connection.h"

namespace tandem::distribute {
namespace {

using Clock = std::chrono::steady_clock;

// How long to go without local connections where no server listens, and where one has hung up
// without a word.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kLongPause = std::chrono::seconds(1);
// How many connections of callers that wait themselves are kept for their next calls.
constexpr std::size_t kMaxIdle = 16;
constexpr auto kKeptIdle = OutgoingRegions::kKept;

}  // namespace

// What the channels of a network share.
class LocalNetwork::Calls {
 public:
  explicit Calls(std::size_t memory_limit) : memory_limit_(memory_limit) {}

  const std::shared_ptr<Cancellation>& closing() const { return closing_; }

  /// Null once the network has ended.
  std::shared_ptr<LocalLoop> loop() {
    const MutexLock lock(mutex_);
    if (!loop_ && !closing_->cancelled()) loop_ = std::make_shared<LocalLoop>(memory_limit_);
    return loop_;
  }
  // False once the network has ended.
  bool add(const std::shared_ptr<ClientConnection>& connection) {
    const MutexLock lock(mutex_);
    if (closing_->cancelled()) return false;
    std::erase_if(connections_, [](const auto& known) { return known.expired(); });
    connections_.push_back(connection);
    return true;
  }
  void close();

 private:
  const std::size_t memory_limit_;
  const std::shared_ptr<Cancellation> closing_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  std::shared_ptr<LocalLoop> loop_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<ClientConnection>> connections_ TANDEM_GUARDED_BY(mutex_);
};

class LocalNetwork::ChannelTo final : public Channel,
                                      public std::enable_shared_from_this<ChannelTo> {
 public:
  ChannelTo(std::string address, std::shared_ptr<Channel> otherwise, std::shared_ptr<Calls> calls)
      : address_(std::move(address)), otherwise_(std::move(otherwise)), calls_(std::move(calls)) {}

  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    // A connection that the peer has ended is found out by using it.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::shared_ptr<ClientConnection> connection = this->connection();
      if (!connection) break;
      if (connection->call(method, request, options, done)) return;
    }
    otherwise_->call(method, std::move(request), options, std::move(done));
  }

  std::pair<Status, Bytes> call_and_wait(const char* method, Bytes request,
                                         const CallOptions& options) override {
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::unique_ptr<WaitingConnection> connection = take_waiting(attempt == 0);
      if (!connection) break;
      auto answer = connection->call(method, request, options, calls_->closing());
      if (!answer) continue;
      if (connection->is_usable()) put_back(std::move(connection));
      return *std::move(answer);
    }
    return otherwise_->call_and_wait(method, std::move(request), options);
  }

 private:
  struct Idle {
    std::unique_ptr<WaitingConnection> connection;
    Clock::time_point since;
  };

  // The one that takes calls; a new one if need be. Null: none can be had now.
  std::shared_ptr<ClientConnection> connection() {
    const MutexLock lock(mutex_);
    if (connection_ && connection_->takes_calls()) return connection_;
    if (connection_) {
      if (!connection_->was_answered()) next_attempt_ = Clock::now() + kLongPause;
      connection_.reset();
    }
    Descriptor socket = connect();
    std::shared_ptr<LocalLoop> loop = calls_->loop();
    if (!socket.is_open() || !loop) return nullptr;
    auto made = std::make_shared<ClientConnection>(std::move(socket), std::move(loop), otherwise_);
    if (!calls_->add(made) || !made->start()) return nullptr;
    connection_ = made;
    return made;
  }

  Descriptor connect() TANDEM_REQUIRES(mutex_) {
    if (Clock::now() < next_attempt_) return {};
    for (const std::string& name : local_names_of_address(address_)) {
      Descriptor socket = connect_to(name);
      if (socket.is_open()) return socket;
    }
    next_attempt_ = Clock::now() + kPause;
    return {};
  }

  std::unique_ptr<WaitingConnection> take_waiting(bool may_be_old) {
    const MutexLock lock(mutex_);
    if (!may_be_old) idle_.clear();
    if (!idle_.empty()) {
      std::unique_ptr<WaitingConnection> taken = std::move(idle_.back().connection);
      idle_.pop_back();
      return taken;
    }
    Descriptor socket = connect();
    std::shared_ptr<LocalLoop> loop = calls_->loop();
    if (!socket.is_open() || !loop) return nullptr;
    return std::make_unique<WaitingConnection>(std::move(socket), std::move(loop));
  }

  void put_back(std::unique_ptr<WaitingConnection> connection) {
    const MutexLock lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back({std::move(connection), Clock::now()});
    look_for_unused();
  }

  // Closes connections that no call has needed for long, now and while there are any.
  void look_for_unused() TANDEM_REQUIRES(mutex_) {
    const std::shared_ptr<LocalLoop> loop = calls_->loop();
    if (idle_.empty() || looks_ || !loop) return;
    looks_ = true;
    loop->at(Clock::now() + kKeptIdle, [weak = weak_from_this()] {
      const std::shared_ptr<ChannelTo> self = weak.lock();
      if (!self) return;
      std::vector<Idle> unused;  // end without the lock
      const MutexLock lock(self->mutex_);
      const auto used = std::find_if(
          self->idle_.begin(), self->idle_.end(),
          [since = Clock::now() - kKeptIdle](const Idle& idle) { return idle.since > since; });
      std::move(self->idle_.begin(), used, std::back_inserter(unused));
      self->idle_.erase(self->idle_.begin(), used);
      self->looks_ = false;
      self->look_for_unused();
    });
  }

  const std::string address_;
  const std::shared_ptr<Channel> otherwise_;
  const std::shared_ptr<Calls> calls_;
  Mutex mutex_;
  Clock::time_point next_attempt_ TANDEM_GUARDED_BY(mutex_) = {};
  std::shared_ptr<ClientConnection> connection_ TANDEM_GUARDED_BY(mutex_);
  bool looks_ TANDEM_GUARDED_BY(mutex_) = false;
  std::vector<Idle> idle_ TANDEM_GUARDED_BY(mutex_);  // the last one was used last
};

void LocalNetwork::Calls::close() {
  closing_->cancel();
  std::shared_ptr<LocalLoop> loop;
  std::vector<std::weak_ptr<ClientConnection>> connections;
  {
    const MutexLock lock(mutex_);
    loop = std::move(loop_);
    connections.swap(connections_);
  }
  for (const auto& connection : connections) {
    if (const auto held = connection.lock()) held->cancel_all();
  }
  if (loop) loop->stop();
}

LocalNetwork::LocalNetwork(const LocalOptions& options)
    : calls_(std::make_shared<Calls>(options.memory_limit)) {}

LocalNetwork::~LocalNetwork() { calls_->close(); }

std::shared_ptr<Channel> LocalNetwork::channel(const std::string& address,
                                               std::shared_ptr<Channel> otherwise) {
  if (!address.starts_with("unix:") && local_names_of_address(address).empty()) return otherwise;
  return std::make_shared<ChannelTo>(address, std::move(otherwise), calls_);
}

std::shared_ptr<LocalLoop> LocalNetwork::loop() { return calls_->loop(); }

}  // namespace tandem::distribute
