// A network with the delay and the rate of a real one, between network namespaces of this machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace bench {

/// Hosts, each a network namespace with a TUN device, and a thread that carries packets from one
/// to another as cables and a switch would: a host sends and receives so many bits a second, and
/// what it has sent arrives `delay` later. It is the kernel's netem without asking for a kernel
/// that has it. Nothing has a name that could stay behind: when the processes on it have ended,
/// however they end, the network is gone.
///
/// The thread asks for real-time priority, as the kernel's own part in sending packets has it.
class ShapedNetwork {
 public:
  struct Options {
    int hosts = 2;
    std::chrono::nanoseconds delay = std::chrono::milliseconds(1);
    double bits_per_second = 10e9;
  };
  /// Throws std::runtime_error that says what the system refuses: it takes root and /dev/net/tun.
  explicit ShapedNetwork(const Options& options);
  ~ShapedNetwork();
  ShapedNetwork(const ShapedNetwork&) = delete;
  ShapedNetwork& operator=(const ShapedNetwork&) = delete;

  /// Numeric. Hosts are numbered from 0.
  static std::string address(int host);
  /// The calling thread is on that host from now on, and so are threads and processes that it
  /// starts; sockets stay where they were made. Also between fork and exec. False if the system
  /// refuses.
  bool enter(int host) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Packet {
    Clock::time_point arrival;
    std::vector<char> bytes;  // behind what the device says of its checksum and segments
  };
  struct Host {
    int space = -1, device = -1;
    Clock::time_point has_sent = {}, has_received = {};
    std::deque<Packet> arriving = {};
  };
  void add_host();
  void carry();
  void send(Host& from, const char* bytes, std::size_t size);
  void deliver(Clock::time_point now);
  void close();

  const Options options_;
  std::vector<Host> hosts_;
  int stop_ = -1;  // an event
  std::thread carrier_;
};

}  // namespace bench
