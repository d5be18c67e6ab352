#include "tandem/distribute/internal/rpc/local/local_network.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/distribute/internal/rpc/local/client_connection.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/local/reply.h"
#include "tandem/distribute/internal/rpc/local/waiting_connection.h"

namespace tandem::distribute {
namespace {

using Clock = std::chrono::steady_clock;

// How long to go without local connections where no server listens, and where one has hung up
// without a word or cannot be understood.
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kLongPause = std::chrono::seconds(1);
// How many callers that wait themselves have a connection each; others share one.
constexpr std::size_t kMaxWaiting = 64;
// How many of their connections are kept for their next calls.
constexpr std::size_t kMaxIdle = 16;
constexpr auto kKeptIdle = OutgoingRegions::kKept;

// Counts one more while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<std::size_t>& count)
      : count_(count), number_(count.fetch_add(1) + 1) {}
  ~Counted() { count_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  // How many there were with it.
  std::size_t number() const { return number_; }

 private:
  std::atomic<std::size_t>& count_;
  const std::size_t number_;
};

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
  ChannelTo(std::string address, std::shared_ptr<Channel> fallback, std::shared_ptr<Calls> calls)
      : address_(std::move(address)), fallback_(std::move(fallback)), calls_(std::move(calls)) {}

  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    if (std::optional<Status> end = end_before_call(options)) return done(*std::move(end), {});
    // A connection that the peer has ended is found out by using it.
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::shared_ptr<ClientConnection> connection = this->connection();
      if (!connection) break;
      if (connection->call(method, request, options, done)) return;
    }
    fallback_->call(method, std::move(request), options, std::move(done));
  }

  std::pair<Status, Bytes> call_and_wait(const char* method, Bytes request,
                                         const CallOptions& options) override {
    if (std::optional<Status> end = end_before_call(options)) return {*std::move(end), {}};
    const Counted waiting(num_waiting_);
    if (waiting.number() > kMaxWaiting)
      return Channel::call_and_wait(method, std::move(request), options);
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::unique_ptr<WaitingConnection> connection = take_waiting(attempt == 0);
      if (!connection) break;
      auto answer = connection->call(method, request, options, calls_->closing());
      if (connection->has_failed()) pause_long();
      if (!answer) continue;
      if (connection->is_usable()) put_back(std::move(connection));
      return *std::move(answer);
    }
    return fallback_->call_and_wait(method, std::move(request), options);
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
      if (const auto failed = connection_->failed_at())
        next_attempt_ = std::max(next_attempt_, *failed + kLongPause);
      connection_.reset();
    }
    Descriptor socket = connect();
    if (!socket.is_open()) return nullptr;
    std::shared_ptr<LocalLoop> loop = loop_if_possible();
    if (!loop) return nullptr;
    auto made = std::make_shared<ClientConnection>(std::move(socket), std::move(loop), fallback_);
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

  // Null once the network has ended, or if the system has no room for one.
  std::shared_ptr<LocalLoop> loop_if_possible() TANDEM_REQUIRES(mutex_) {
    try {
      return calls_->loop();
    } catch (const UnavailableError& error) {
      next_attempt_ = Clock::now() + kLongPause;
      log(LogLevel::kWarning, cat(error.what(), " Calls use gRPC meanwhile."));
      return nullptr;
    }
  }

  void pause_long() {
    const MutexLock lock(mutex_);
    next_attempt_ = Clock::now() + kLongPause;
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
    if (!socket.is_open()) return nullptr;
    std::shared_ptr<LocalLoop> loop = loop_if_possible();
    if (!loop) return nullptr;
    return std::make_unique<WaitingConnection>(std::move(socket), std::move(loop));
  }

  void put_back(std::unique_ptr<WaitingConnection> connection) {
    const MutexLock lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back({std::move(connection), Clock::now()});
    close_idle_later();
  }

  // Closes connections that no call has needed for long, now and while there are any.
  void close_idle_later() TANDEM_REQUIRES(mutex_) {
    if (idle_.empty() || timer_is_set_) return;
    const std::shared_ptr<LocalLoop> loop = loop_if_possible();
    if (!loop) return;
    timer_is_set_ = true;
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
      self->timer_is_set_ = false;
      self->close_idle_later();
    });
  }

  const std::string address_;
  const std::shared_ptr<Channel> fallback_;
  const std::shared_ptr<Calls> calls_;
  std::atomic<std::size_t> num_waiting_{0};
  Mutex mutex_;
  Clock::time_point next_attempt_ TANDEM_GUARDED_BY(mutex_) = {};
  std::shared_ptr<ClientConnection> connection_ TANDEM_GUARDED_BY(mutex_);
  bool timer_is_set_ TANDEM_GUARDED_BY(mutex_) = false;
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
                                               std::shared_ptr<Channel> fallback) {
  if (!address.starts_with("unix:") && local_names_of_address(address).empty()) return fallback;
  return std::make_shared<ChannelTo>(address, std::move(fallback), calls_);
}

std::shared_ptr<LocalLoop> LocalNetwork::loop() { return calls_->loop(); }

}  // namespace tandem::distribute
