#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/bytes.h"
#include "tandem/distribute/internal/rpc/local/descriptor.h"
#include "tandem/distribute/internal/rpc/local/frame.h"
#include "tandem/distribute/internal/rpc/local/shared_memory.h"

namespace tandem::distribute {

/// One end of a local connection: sends and receives frames without blocking. Small bodies go
/// through the socket, large ones through shared memory; those of frames that were received keep
/// what they point to. `send` and `flush` may be called from any thread, `receive` from one at a
/// time.
class FrameSocket {
 public:
  /// `limit` must outlive this.
  FrameSocket(Descriptor socket, SharedMemoryLimit& limit);

  const Descriptor& descriptor() const { return socket_; }

  /// Sends what the socket takes, and the rest by `flush`. False: the peer has gone, and has not
  /// got the frame.
  bool send(FrameHeader head, std::string_view text = {}, const Bytes& body = {});
  /// Goes on with sending; false if the peer has gone.
  bool flush();
  /// Whether something is left to send.
  bool has_unsent() const;
  /// Whether all of it has been sent.
  bool has_sent_all() const;
  /// Whether the system lacked memory for what is left: `flush` again in `kRetry`, however ready
  /// the socket is.
  bool is_short_of_memory() const;
  static constexpr auto kRetry = std::chrono::milliseconds(5);

  /// Reads some of what has come. False if the peer has gone, or `has_failed`.
  bool receive(std::vector<Frame>& frames);
  /// Whether `receive` has met what it cannot take: what is no frame, or memory for which this
  /// process lacks descriptors or address space. A warning has been logged.
  bool has_failed() const { return failed_.load(); }

  /// Has the peer unmap memory that was not used of late.
  void trim();
  bool shares_memory() const { return !outgoing_.empty(); }

  /// Ends both directions; `receive` says so.
  void shut_down();

 private:
  // From so many bytes on a region costs less than two copies through the kernel.
  static constexpr std::size_t kMinShared = 16 * 1024;

  // What goes out in one piece, and with a descriptor if it is open.
  struct Outgoing {
    std::string head;
    Bytes body;
    Descriptor descriptor;
    std::size_t sent = 0;
  };
  void place(FrameHeader& head, const Bytes& body, Outgoing& out);
  bool flush_locked() TANDEM_REQUIRES(send_mutex_);
  bool send_some(Outgoing& out, bool& would_block) TANDEM_REQUIRES(send_mutex_);
  bool receive_some();
  bool take(Frame& frame);

  const Descriptor socket_;
  OutgoingRegions outgoing_;

  mutable Mutex send_mutex_;
  std::deque<Outgoing> unsent_ TANDEM_GUARDED_BY(send_mutex_);
  bool broken_ TANDEM_GUARDED_BY(send_mutex_) = false;
  bool short_of_memory_ TANDEM_GUARDED_BY(send_mutex_) = false;

  FrameReader reader_;
  IncomingRegions incoming_;
  std::deque<Descriptor> received_;  // that no frame has taken
  std::atomic<bool> failed_{false};
};

}  // namespace tandem::distribute
