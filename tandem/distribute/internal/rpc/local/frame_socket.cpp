#include "tandem/distribute/internal/rpc/local/frame_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"

namespace tandem::distribute {
namespace {

// How many pieces of memory one call of the kernel sends.
constexpr std::size_t kMaxVectors = 64;
// How many descriptors are taken at a time, and kept until their frames have come.
constexpr std::size_t kMaxDescriptors = 16;

void append(std::string& out, const FrameHeader& head) {
  out.append(reinterpret_cast<const char*>(&head), sizeof(head));
}

}  // namespace

FrameSocket::FrameSocket(Descriptor socket, SharedMemoryLimit& limit)
    : socket_(std::move(socket)), outgoing_(limit) {}

void FrameSocket::place(FrameHeader& head, const Bytes& body, Outgoing& out) {
  std::optional<OutgoingRegions::Placed> placed;
  if (body.size() >= kMinShared) placed = outgoing_.place(body);
  if (!placed) {
    out.body = body;
    return;
  }
  head.region = placed->region;
  head.offset = placed->offset;
  for (const std::uint32_t id : placed->forgotten)
    append(out.head, {.kind = FrameHeader::kForget, .region = id});
  if (placed->descriptor.is_open()) {
    append(out.head, {.kind = FrameHeader::kRegion, .number = placed->size, .region = head.region});
    out.descriptor = std::move(placed->descriptor);
  }
}

bool FrameSocket::send(FrameHeader head, std::string_view text, const Bytes& body) {
  Outgoing out;
  head.text_size = static_cast<std::uint32_t>(text.size());
  head.body_size = body.size();
  place(head, body, out);
  append(out.head, head);
  out.head += text;
  const MutexLock lock(send_mutex_);
  if (broken_) return false;
  unsent_.push_back(std::move(out));
  // What earlier frames are waiting for, this one waits for too.
  return unsent_.size() > 1 || flush_locked();
}

bool FrameSocket::flush() {
  const MutexLock lock(send_mutex_);
  return !broken_ && flush_locked();
}

bool FrameSocket::has_unsent() const {
  const MutexLock lock(send_mutex_);
  return !broken_ && !unsent_.empty();
}

bool FrameSocket::has_sent_all() const {
  const MutexLock lock(send_mutex_);
  return !broken_ && unsent_.empty();
}

bool FrameSocket::is_short_of_memory() const {
  const MutexLock lock(send_mutex_);
  return !broken_ && short_of_memory_;
}

bool FrameSocket::flush_locked() {
  short_of_memory_ = false;
  while (!unsent_.empty()) {
    Outgoing& out = unsent_.front();
    bool would_block = false;
    if (!send_some(out, would_block)) {
      broken_ = true;
      unsent_.clear();
      return false;
    }
    if (would_block) return true;
    if (out.sent == out.head.size() + out.body.size()) unsent_.pop_front();
  }
  return true;
}

bool FrameSocket::send_some(Outgoing& out, bool& would_block) {
  std::array<iovec, kMaxVectors> vectors{};
  std::size_t count = 0, skipped = out.sent;
  const auto add = [&](std::string_view memory) {
    if (skipped >= memory.size()) {
      skipped -= memory.size();
    } else if (count < vectors.size()) {
      memory.remove_prefix(std::exchange(skipped, 0));
      vectors[count++] = {const_cast<char*>(memory.data()), memory.size()};
    }
  };
  add(out.head);
  for (const Bytes::Piece& piece : out.body.pieces()) add(piece.memory);
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (out.descriptor.is_open()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = out.descriptor.number();
    std::memcpy(CMSG_DATA(first), &number, sizeof(number));
  }
  const ssize_t sent = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    // ETOOMANYREFS: too many descriptors of this user are in sockets, and not received yet.
    short_of_memory_ = errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM;
    would_block = short_of_memory_ || errno == EAGAIN || errno == EWOULDBLOCK;
    return would_block || errno == EINTR;
  }
  out.descriptor = {};  // went with the first byte
  out.sent += static_cast<std::size_t>(sent);
  return true;
}

bool FrameSocket::receive_some() {
  const std::span<char> space = reader_.space();
  iovec vector{space.data(), space.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(part) + at, sizeof(number));
      received_.emplace_back(number);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    throw ResourceExhaustedError(
        "A descriptor of shared memory was lost: raise the limit on open files (ulimit -n).");
  }
  if (received_.size() > kMaxDescriptors)
    throw InvalidArgumentError("A peer sends descriptors that no frame announces.");
  if (count == 0) return false;
  reader_.received(static_cast<std::size_t>(count));
  return true;
}

// What only concerns memory is done at once; true if there is something for others.
bool FrameSocket::take(Frame& frame) {
  const FrameHeader& head = frame.head;
  if (head.kind == FrameHeader::kRegion) {
    if (received_.empty())
      throw InvalidArgumentError("A frame announces memory, but no descriptor of it has come.");
    const Descriptor descriptor = std::move(received_.front());
    received_.pop_front();
    incoming_.add(head.region, descriptor, head.number);
    return false;
  }
  if (head.kind == FrameHeader::kForget) {
    incoming_.forget(head.region);
    return false;
  }
  if (head.region != 0) frame.body = incoming_.take(head.region, head.offset, head.body_size);
  return true;
}

bool FrameSocket::receive(std::vector<Frame>& frames) {
  try {
    if (!receive_some()) return false;
    Frame frame;
    while (reader_.next(frame)) {
      if (take(frame)) frames.push_back(std::move(frame));
    }
    return true;
  } catch (const Error& error) {
    failed_ = true;
    log(LogLevel::kWarning, cat("A local connection ends. ", error.what()));
    return false;
  }
}

void FrameSocket::trim() {
  for (const std::uint32_t id : outgoing_.trim())
    send({.kind = FrameHeader::kForget, .region = id});
}

void FrameSocket::shut_down() { ::shutdown(socket_.number(), SHUT_RDWR); }

}  // namespace tandem::distribute
