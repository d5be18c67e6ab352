#include "tandem/distribute/internal/rpc/local/local_connection.h"

#include <utility>
#include <vector>

namespace tandem::distribute {

LocalConnection::LocalConnection(Descriptor socket, std::shared_ptr<LocalLoop> loop)
    : loop_(std::move(loop)), socket_(std::move(socket), loop_->memory()) {}

bool LocalConnection::start() { return loop_->add(shared_from_this()); }

void LocalConnection::arm() {
  const MutexLock lock(arm_mutex_);
  if (closed_) return;
  const bool waits = socket_.is_short_of_memory();
  loop_->arm(*this, socket_.has_unsent() && !waits);
  if (waits) flush_later();
}

void LocalConnection::flush_later() {
  if (flushes_later_.exchange(true)) return;
  loop_->at(LocalLoop::Clock::now() + FrameSocket::kRetry, [weak = weak_from_this()] {
    const std::shared_ptr<LocalConnection> self = weak.lock();
    if (!self) return;
    self->flushes_later_ = false;
    if (!self->socket_.flush()) return self->socket_.shut_down();
    self->arm();
  });
}

bool LocalConnection::send(const FrameHeader& head, std::string_view text, const Bytes& body) {
  if (!socket_.send(head, text, body)) {
    socket_.shut_down();  // which the loop sees
    return false;
  }
  if (socket_.has_unsent()) arm();
  if (!body.empty() && socket_.shares_memory()) schedule_trim();
  return true;
}

// Memory that large messages have needed is released once there are none any more.
void LocalConnection::schedule_trim() {
  if (trims_.exchange(true)) return;
  loop_->at(LocalLoop::Clock::now() + OutgoingRegions::kKept, [weak = weak_from_this()] {
    const std::shared_ptr<LocalConnection> self = weak.lock();
    if (!self) return;
    self->socket_.trim();
    if (self->socket_.has_unsent()) self->arm();
    self->trims_ = false;
    if (self->socket_.shares_memory()) self->schedule_trim();
  });
}

void LocalConnection::on_ready() {
  const MutexLock lock(receive_mutex_);
  if (ended_) return;
  socket_.flush();
  std::vector<Frame> frames;
  const bool goes_on = socket_.receive(frames);
  for (Frame& frame : frames) on_frame(std::move(frame));
  if (goes_on) return arm();
  ended_ = true;
  if (close()) on_end();
}

bool LocalConnection::close() {
  {
    const MutexLock lock(arm_mutex_);
    if (closed_) return false;
    closed_ = true;
  }
  loop_->remove(*this);
  socket_.shut_down();
  return true;
}

}  // namespace tandem::distribute
