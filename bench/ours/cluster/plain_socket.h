// What loopback allows: bytes through a TCP socket, from memory to memory.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/common/timing.h"

namespace bench {

inline void send_all(int socket, const std::vector<char>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

/// The median of some copies, each asked for by one byte.
inline double plain_socket_megabytes_per_second(double megabytes) {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listening, any, size) != 0 || ::listen(listening, 1) != 0 ||
      ::getsockname(listening, any, &size) != 0)
    throw std::runtime_error("no socket listens");
  const auto count = static_cast<std::size_t>(megabytes * 1e6);
  std::thread server([listening, count] {
    const std::vector<char> bytes(count, 1);
    const int peer = ::accept(listening, nullptr, nullptr);
    for (char asked = 0; ::recv(peer, &asked, 1, 0) == 1;) send_all(peer, bytes);
    ::close(peer);
  });
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  bool ok = ::connect(client, any, size) == 0;
  std::vector<char> received(count);
  const double seconds = seconds_per_call([&](std::int64_t n) {
    for (; ok && n > 0; --n) {
      ok = ::send(client, "x", 1, MSG_NOSIGNAL) == 1;
      for (std::size_t at = 0; ok && at < count;) {
        const ssize_t got = ::recv(client, received.data() + at, count - at, 0);
        ok = got > 0;
        at += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
      }
    }
  });
  ::close(client);
  ::close(listening);
  server.join();
  if (!ok) throw std::runtime_error("the plain socket failed");
  return megabytes / seconds;
}

}  // namespace bench
