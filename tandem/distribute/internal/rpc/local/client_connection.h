#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/local_connection.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The client's end of a local connection, for any number of calls at a time. Thread-safe.
class ClientConnection final : public LocalConnection {
 public:
  /// Calls that wait for the peer to be ready, and that it refuses, go on over `fallback`.
  ClientConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop,
                   std::shared_ptr<Channel> fallback);

  /// False if the peer takes no more calls or has gone: then nothing has been sent, and `request`
  /// and `done` are as they were.
  bool call(const char* method, Bytes& request, const CallOptions& options, ReplyDone& done);
  /// Whether `call` may be tried.
  bool takes_calls() const;
  /// When the peer hung up without having said that it takes no more calls, or this side could not
  /// receive what it sent; nothing if neither has happened.
  std::optional<LocalLoop::Clock::time_point> failed_at() const;
  /// Ends calls in progress as cancelled, and the connection.
  void cancel_all();

 private:
  struct Pending;

  void on_frame(Frame frame) override;
  void on_end() override;

  std::shared_ptr<Pending> take(std::uint64_t call);
  void end(std::uint64_t call, Code code, const char* message);
  static void finish(const std::shared_ptr<Pending>& call, Status status, Bytes reply);
  void retry_on_fallback(const std::shared_ptr<Pending>& call);
  void end_all(Code code, const char* message);

  const std::shared_ptr<Channel> fallback_;
  mutable Mutex mutex_;
  bool takes_calls_ TANDEM_GUARDED_BY(mutex_) = true;
  bool is_leaving_ TANDEM_GUARDED_BY(mutex_) = false;
  std::optional<LocalLoop::Clock::time_point> failed_at_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t last_call_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::shared_ptr<Pending>> pending_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
