#include "bench/ours/cluster/shaped_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr char kNetwork[] = "10.0.0.";
constexpr char kThisNamespace[] = "/proc/thread-self/ns/net";
constexpr int kHeader = 10;  // a virtio_net_hdr, whose own header is not C++
constexpr std::size_t kMaxPacket = kHeader + 65'536;
constexpr int kPacketsAtATime = 64;  // of a host, before others have their turn

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

sockaddr ipv4(const std::string& address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  sockaddr any{};
  std::memcpy(&any, &result, sizeof(result));
  return any;
}

// A device of this name in the namespace of the calling thread.
class Interface {
 public:
  explicit Interface(const char* name)
      : socket_(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "a socket")) {
    std::strncpy(request_.ifr_name, name, IFNAMSIZ - 1);
  }
  ~Interface() { ::close(socket_); }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  void set_address(const std::string& address, const std::string& mask) {
    request_.ifr_addr = ipv4(address);
    control(SIOCSIFADDR);
    request_.ifr_netmask = ipv4(mask);
    control(SIOCSIFNETMASK);
  }
  void set_up() {
    control(SIOCGIFFLAGS);
    request_.ifr_flags = static_cast<short>(request_.ifr_flags | IFF_UP | IFF_RUNNING);
    control(SIOCSIFFLAGS);
  }

 private:
  void control(unsigned long what) {
    checked(::ioctl(socket_, what, &request_), "setting up a network device");
  }

  const int socket_;
  ifreq request_{};
};

// Packets of the device come and go through the descriptor. As those of a virtual machine they are
// up to 64 KiB long, and their checksums are not computed: they never leave the machine.
int open_device(const char* name) {
  const int device =
      checked(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "opening /dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(device, TUNSETIFF, &request) < 0 || ::ioctl(device, TUNSETVNETHDRSZ, &kHeader) < 0 ||
      ::ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) < 0) {
    const int error = errno;
    ::close(device);
    errno = error;
    checked(-1, "making a TUN device");
  }
  return device;
}

// To which host, by the last number of its IPv4 address.
std::optional<std::size_t> destination(const char* packet, std::size_t size, std::size_t hosts) {
  if (size < kHeader + sizeof(iphdr)) return std::nullopt;
  iphdr head;
  std::memcpy(&head, packet + kHeader, sizeof(head));
  const std::uint32_t number = ntohl(head.daddr) & 0xff;
  if (head.version != 4 || number < 1 || number > hosts) return std::nullopt;
  return number - 1;
}

}  // namespace

ShapedNetwork::ShapedNetwork(const Options& options) : options_(options) {
  const int home = checked(::open(kThisNamespace, O_RDONLY | O_CLOEXEC), kThisNamespace);
  try {
    stop_ = checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an event");
    for (int h = 0; h < options_.hosts; ++h) add_host();
  } catch (...) {
    ::setns(home, CLONE_NEWNET);
    ::close(home);
    close();
    throw;
  }
  ::setns(home, CLONE_NEWNET);
  ::close(home);
  carrier_ = std::thread([this] { carry(); });
  const sched_param priority{.sched_priority = 1};
  ::pthread_setschedparam(carrier_.native_handle(), SCHED_FIFO, &priority);
}

void ShapedNetwork::add_host() {
  checked(::unshare(CLONE_NEWNET), "making a network namespace");
  Host& host = hosts_.emplace_back();
  host.space = checked(::open(kThisNamespace, O_RDONLY | O_CLOEXEC), kThisNamespace);
  Interface("lo").set_up();
  host.device = open_device("net0");
  Interface device("net0");
  device.set_address(address(static_cast<int>(hosts_.size()) - 1), "255.255.255.0");
  device.set_up();
}

ShapedNetwork::~ShapedNetwork() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_, &one, sizeof(one)) + 0);
  carrier_.join();
  close();
}

void ShapedNetwork::close() {
  for (const Host& host : hosts_) {
    if (host.device >= 0) ::close(host.device);
    if (host.space >= 0) ::close(host.space);
  }
  if (stop_ >= 0) ::close(stop_);
}

std::string ShapedNetwork::address(int host) { return kNetwork + std::to_string(host + 1); }

bool ShapedNetwork::enter(int host) const {
  return ::setns(hosts_[static_cast<std::size_t>(host)].space, CLONE_NEWNET) == 0;
}

void ShapedNetwork::carry() {
  std::vector<pollfd> waits{{stop_, POLLIN, 0}};
  for (const Host& host : hosts_) waits.push_back({host.device, POLLIN, 0});
  std::vector<char> packet(kMaxPacket);
  for (;;) {
    deliver(Clock::now());
    std::optional<Clock::time_point> next;
    for (const Host& host : hosts_) {
      if (host.arriving.empty()) continue;
      const Clock::time_point arrival = host.arriving.front().arrival;
      next = next ? std::min(*next, arrival) : arrival;
    }
    timespec patience{};
    if (next) {
      const auto left = std::max(Clock::duration::zero(), *next - Clock::now());
      patience.tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    }
    if (::ppoll(waits.data(), waits.size(), next ? &patience : nullptr, nullptr) <= 0) continue;
    if (waits[0].revents != 0) return;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (waits[h + 1].revents == 0) continue;
      for (int i = 0; i < kPacketsAtATime; ++i) {
        const ssize_t size = ::read(hosts_[h].device, packet.data(), packet.size());
        if (size <= 0) break;
        send(hosts_[h], packet.data(), static_cast<std::size_t>(size));
      }
    }
  }
}

// Sending and receiving take time for each bit, one packet after the other; a long packet arrives
// while it is being sent.
void ShapedNetwork::send(Host& from, const char* bytes, std::size_t size) {
  const auto to = destination(bytes, size, hosts_.size());
  if (!to) return;
  Host& host = hosts_[*to];
  const auto duration = std::chrono::nanoseconds(
      static_cast<std::int64_t>(8e9 * static_cast<double>(size) / options_.bits_per_second));
  from.has_sent = std::max(from.has_sent, Clock::now()) + duration;
  host.has_received = std::max(host.has_received + duration, from.has_sent + options_.delay);
  host.arriving.push_back({host.has_received, std::vector<char>(bytes, bytes + size)});
}

// A host that has no room loses packets, as on any network.
void ShapedNetwork::deliver(Clock::time_point now) {
  for (Host& host : hosts_) {
    for (; !host.arriving.empty() && host.arriving.front().arrival <= now;
         host.arriving.pop_front()) {
      const std::vector<char>& bytes = host.arriving.front().bytes;
      static_cast<void>(::write(host.device, bytes.data(), bytes.size()) + 0);
    }
  }
}

}  // namespace bench
