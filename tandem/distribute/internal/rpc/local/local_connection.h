#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/frame_socket.h"
#include "tandem/distribute/internal/rpc/local/local_loop.h"

namespace tandem::distribute {

/// One end of a local connection whose frames a loop's threads wait for. Thread-safe.
class LocalConnection : public EventSource, public std::enable_shared_from_this<LocalConnection> {
 public:
  LocalConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop);

  int descriptor() const final { return socket_.descriptor().number(); }
  void on_ready() final;

  /// Begins to wait for frames; false if that cannot be.
  bool start();
  /// False: the peer has gone, and has not got the frame.
  bool send(const FrameHeader& head, std::string_view text = {}, const Bytes& body = {});
  bool has_unsent() const { return socket_.has_unsent(); }
  /// Ends the connection from this side, and `on_end` is not called; false if it has ended before.
  bool close();
  /// Whether it has ended because of what this side could not receive: see FrameSocket.
  bool has_failed() const { return socket_.has_failed(); }

 protected:
  LocalLoop& loop() const { return *loop_; }

  /// A frame has come: in order, one at a time, on a thread that should go on waiting soon.
  virtual void on_frame(Frame frame) = 0;
  /// The peer has gone, or has sent what is no frame. The last call.
  virtual void on_end() = 0;

 private:
  void arm();
  void flush_later();
  void schedule_trim();

  const std::shared_ptr<LocalLoop> loop_;
  FrameSocket socket_;
  Mutex arm_mutex_;
  bool closed_ TANDEM_GUARDED_BY(arm_mutex_) = false;
  Mutex receive_mutex_;
  bool ended_ TANDEM_GUARDED_BY(receive_mutex_) = false;
  std::atomic<bool> trims_{false};
  std::atomic<bool> flushes_later_{false};
};

}  // namespace tandem::distribute
