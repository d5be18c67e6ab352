#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace tandem::distribute {

/// Answers GET /metrics by HTTP on loopback, for Prometheus: one request at a time, each over a
/// connection of its own, on a thread of its own.
class MetricsServer {
 public:
  /// Listens at once; port 0 takes a free one. Throws UnavailableError if the port cannot be had.
  MetricsServer(int port, std::function<std::string()> text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  void serve();
  void answer(int connection) const;

  const std::function<std::string()> text_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace tandem::distribute
