#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/distribute/internal/rpc/local/frame_socket.h"

namespace tandem::fuzz {

/// What a process may send through a local connection: as a stream that comes in pieces of several
/// sizes, and to the end of a connection, together with the memory that the first frames announce.
inline void local_frames(std::string_view bytes) {
  std::array<std::size_t, 3> frames{};
  const std::array<std::size_t, 3> steps{1, 50, std::size_t{1} << 20};
  for (std::size_t s = 0; s < steps.size(); ++s) {
    distribute::FrameReader reader;
    try {
      for (std::string_view rest = bytes; !rest.empty();) {
        const std::span<char> space = reader.space();
        if (space.empty()) std::abort();
        const std::size_t count = std::min({steps[s], space.size(), rest.size()});
        std::memcpy(space.data(), rest.data(), count);
        reader.received(count);
        rest.remove_prefix(count);
        for (distribute::Frame frame; reader.next(frame); ++frames[s]) {
          if (frame.message().size() + frame.details().size() != frame.text.size()) std::abort();
        }
      }
    } catch (const InvalidArgumentError&) {
    }
    if (frames[s] != frames[0]) std::abort();
  }

  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  const distribute::Descriptor sender(ends[0]);
  distribute::SharedMemoryLimit limit(0);
  distribute::FrameSocket receiver(distribute::Descriptor(ends[1]), limit);
  constexpr std::size_t kSize = 4096;
  distribute::Descriptor shared;
  if (!distribute::SharedRegion::create(kSize, shared)) std::abort();
  iovec vector{const_cast<char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 100'000)};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> numbers{shared.number(), sender.number()};  // one of them no memory
  std::memcpy(CMSG_DATA(part), numbers.data(), sizeof(numbers));
  if (bytes.empty() || ::sendmsg(sender.number(), &message, MSG_DONTWAIT) < 0) return;
  ::shutdown(sender.number(), SHUT_WR);
  std::vector<distribute::Frame> kept;
  const LogLevel level = log_level();
  set_log_level(LogLevel::kNone);  // bad bytes are logged, and there are many here
  while (receiver.receive(kept)) continue;
  set_log_level(level);
  std::size_t sum = 0;
  for (distribute::Frame& frame : kept) {
    for (const char c : frame.body.flat()) sum += static_cast<unsigned char>(c);
  }
  if (sum > bytes.size() * 255 + kept.size() * kSize * 255) std::abort();
}

}  // namespace tandem::fuzz
