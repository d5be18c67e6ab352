#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/local_connection.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

class ServerConnection;

/// What the connections of a local server share: the service, and the calls in progress.
/// Thread-safe.
class ServedCalls {
 public:
  ServedCalls(Service& service, LocalLoop& loop);

  Service& service() const { return service_; }
  /// How long calls of a method have kept a thread of late.
  HandlingTime& time_of(const std::string& method) const;

  void add(const std::shared_ptr<ServerConnection>& connection);
  void remove(const ServerConnection* connection);
  std::vector<std::shared_ptr<ServerConnection>> connections() const;

  /// False if no more calls are taken.
  bool begin_call();
  void end_call();
  /// Has `begin_call` refuse; false if it does already.
  bool refuse_calls();
  /// Waits until none is in progress; false at `until`.
  bool wait_for_calls(std::chrono::steady_clock::time_point until);

 private:
  Service& service_;
  HandlingTime& other_;
  std::map<std::string, std::reference_wrapper<HandlingTime>, std::less<>> times_;
  mutable Mutex mutex_;
  std::condition_variable none_open_;
  std::map<const ServerConnection*, std::shared_ptr<ServerConnection>> connections_
      TANDEM_GUARDED_BY(mutex_);
  std::size_t open_calls_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool refuses_ TANDEM_GUARDED_BY(mutex_) = false;
};

/// The server's end of a local connection, and its calls. Thread-safe.
class ServerConnection final : public LocalConnection {
 public:
  ServerConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop,
                   std::shared_ptr<ServedCalls> served);
  ~ServerConnection() override;
  void cancel_calls();

 private:
  struct Call;

  void on_frame(Frame frame) override;
  void on_end() override;

  /// False if there is a call of that number.
  bool add(std::uint64_t call, const std::shared_ptr<Cancellation>& cancellation);
  void erase(std::uint64_t call);
  void begin(Frame frame);
  void run(const std::shared_ptr<Call>& call);
  void expire(Call& call);
  void send_reply(Call& call, const Status& status, const Bytes& body);
  void reply(Call& call, const Status& status, const Bytes& body);
  std::shared_ptr<ServerConnection> self();

  const std::shared_ptr<ServedCalls> served_;
  const std::string peer_;
  Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Cancellation>> calls_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
