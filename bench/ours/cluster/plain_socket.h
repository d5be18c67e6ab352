// What the network allows: bytes through a TCP socket, from memory to memory.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/timing.h"

namespace bench {

/// A thread that answers one client: each byte that it gets by so many.
class PlainSocket {
 public:
  /// Listens at the address when this returns.
  PlainSocket(const std::string& address, std::size_t bytes) : bytes_(bytes) {
    address_.sin_family = AF_INET;
    socklen_t size = sizeof(address_);
    auto* any = reinterpret_cast<sockaddr*>(&address_);
    if (::inet_pton(AF_INET, address.c_str(), &address_.sin_addr) != 1 ||
        ::bind(listening_, any, size) != 0 || ::listen(listening_, 1) != 0 ||
        ::getsockname(listening_, any, &size) != 0) {
      ::close(listening_);
      throw std::runtime_error("no socket listens");
    }
    server_ = std::thread([this] {
      const std::vector<char> answer(bytes_, 1);
      const int peer = ::accept(listening_, nullptr, nullptr);
      for (char asked = 0; ::recv(peer, &asked, 1, 0) == 1;) send_all(peer, answer);
      ::close(peer);
    });
  }
  ~PlainSocket() {
    ::shutdown(listening_, SHUT_RDWR);
    server_.join();
    ::close(listening_);
  }
  PlainSocket(const PlainSocket&) = delete;
  PlainSocket& operator=(const PlainSocket&) = delete;

  /// From the question until the last byte is there: the median of some. May be called once.
  double seconds_per_answer() {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    bool ok =
        ::connect(client, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) == 0;
    std::vector<char> received(bytes_);
    const double seconds = seconds_per_call([&](std::int64_t n) {
      for (; ok && n > 0; --n) {
        ok = ::send(client, "x", 1, MSG_NOSIGNAL) == 1;
        for (std::size_t at = 0; ok && at < bytes_;) {
          const ssize_t got = ::recv(client, received.data() + at, bytes_ - at, 0);
          ok = got > 0;
          at += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        }
      }
    });
    ::close(client);
    if (!ok) throw std::runtime_error("the plain socket failed");
    return seconds;
  }

 private:
  static void send_all(int socket, const std::vector<char>& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<std::size_t>(sent);
    }
  }

  const std::size_t bytes_;
  const int listening_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
  std::thread server_;
};

}  // namespace bench
