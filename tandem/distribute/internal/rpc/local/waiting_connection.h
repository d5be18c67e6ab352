#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/distribute/internal/rpc/local/frame_socket.h"
#include "tandem/distribute/internal/rpc/local/local_loop.h"
#include "tandem/distribute/internal/rpc/local/wake_event.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The client's end of a local connection whose caller waits for the answer itself, so that no
/// other thread is woken. One call at a time.
class WaitingConnection {
 public:
  WaitingConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop);

  /// Nothing if the peer has gone before it got the call, or refuses it: it may be made elsewhere.
  /// `closing` cancels the call too.
  std::optional<std::pair<Status, Bytes>> call(const char* method, const Bytes& request,
                                               const CallOptions& options,
                                               const std::shared_ptr<Cancellation>& closing);
  /// Whether another call may follow.
  bool is_usable() const { return usable_; }
  /// Whether the peer has hung up without an answer, or this side could not receive it.
  bool has_failed() const { return failed_; }

 private:
  const std::shared_ptr<LocalLoop> loop_;  // whose memory it shares
  FrameSocket socket_;
  const WakeEvent wake_;
  bool usable_;
  bool failed_ = false;
  std::uint64_t last_call_ = 0;
};

}  // namespace tandem::distribute
