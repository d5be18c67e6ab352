#include "tandem/distribute/internal/server/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

constexpr std::size_t kMaxRequestBytes = 8192;
constexpr int kPollMs = 200;
constexpr int kPatienceMs = 2000;  // for a client that connects and says nothing

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

MetricsServer::MetricsServer(int port, std::function<std::string()> text)
    : text_(std::move(text)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int reuse = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || ::bind(socket_, generic, size) != 0 || ::listen(socket_, 16) != 0 ||
      ::getsockname(socket_, generic, &size) != 0) {
    if (socket_ >= 0) ::close(socket_);
    throw UnavailableError(cat("The server cannot listen on port ", port, " for its metrics."));
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

MetricsServer::~MetricsServer() {
  closing_ = true;
  thread_.join();
  ::close(socket_);
}

void MetricsServer::serve() {
  while (!closing_) {
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, kPollMs) <= 0) continue;
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    ::close(connection);
  }
}

void MetricsServer::answer(int connection) const {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    pollfd waiting{connection, POLLIN, 0};
    char buffer[1024];
    if (::poll(&waiting, 1, kPatienceMs) <= 0 || request.size() > kMaxRequestBytes) return;
    const ssize_t got = ::recv(connection, buffer, sizeof(buffer), 0);
    if (got <= 0) return;
    request.append(buffer, static_cast<std::size_t>(got));
  }
  const bool known = request.starts_with("GET /metrics ") || request.starts_with("GET /metrics?");
  const std::string body = known ? text_() : "see /metrics\n";
  send_all(connection, cat("HTTP/1.1 ", known ? "200 OK" : "404 Not Found",
                           "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                           "Connection: close\r\nContent-Length: ",
                           body.size(), "\r\n\r\n", body));
}

}  // namespace tandem::distribute
