#include "tandem/distribute/internal/rpc/local/local_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

// What is exchanged has no other version number: who speaks another version has another name.
constexpr std::string_view kPrefix = "tandem-1/";
constexpr std::string_view kUnix = "unix:";
constexpr int kBacklog = 128;

// A socket's file, which is the same in each mount namespace that sees it.
std::string name_of_file(std::string_view path) {
  struct stat file {};
  if (::stat(std::string(path).c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return {};
  return cat(kPrefix, kUnix, file.st_dev, ":", file.st_ino);
}

bool is_of_own_interface(const in_addr& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = all; each && !found; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, each->ifa_addr, sizeof(own));
    found = own.sin_addr.s_addr == address.s_addr;
  }
  ::freeifaddrs(all);
  return found;
}

struct Address {
  sockaddr_un value{};
  socklen_t size = 0;
};
std::optional<Address> abstract_address(const std::string& name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof(address.value.sun_path)) return std::nullopt;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Descriptor new_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::optional<ucred> credentials(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool is_of_this_user(const Descriptor& socket) {
  const std::optional<ucred> peer = credentials(socket.number());
  return peer && peer->uid == ::geteuid();
}

}  // namespace

std::string local_name_of_server(std::string_view bind, int port) {
  if (bind.starts_with(kUnix)) return name_of_file(bind.substr(kUnix.size()));
  const std::size_t colon = bind.rfind(':');
  if (colon == std::string_view::npos || port <= 0) return {};
  return cat(kPrefix, bind.substr(0, colon), ":", port);
}

std::vector<std::string> local_names_of_address(std::string_view address) {
  if (address.starts_with(kUnix)) {
    std::string name = name_of_file(address.substr(kUnix.size()));
    if (name.empty()) return {};
    return {std::move(name)};
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string host(address.substr(0, colon));
  const std::string_view port = address.substr(colon + 1);
  const std::string anywhere = cat(kPrefix, "0.0.0.0:", port);
  if (host == "[::1]") return {cat(kPrefix, host, ":", port)};
  if (host == "localhost") host = "127.0.0.1";
  in_addr number{};
  if (::inet_pton(AF_INET, host.c_str(), &number) != 1) return {};
  if (host.starts_with("127.")) return {cat(kPrefix, host, ":", port), anywhere};
  if (is_of_own_interface(number)) return {anywhere};
  return {};
}

Descriptor listen_at(const std::string& name) {
  const std::optional<Address> address = abstract_address(name);
  Descriptor socket = new_socket();
  if (!address || !socket.is_open()) return {};
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address->value), address->size) !=
          0 ||
      ::listen(socket.number(), kBacklog) != 0)
    return {};
  return socket;
}

Descriptor connect_to(const std::string& name) {
  const std::optional<Address> address = abstract_address(name);
  Descriptor socket = new_socket();
  if (!address || !socket.is_open()) return {};
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address->value),
                address->size) != 0 ||
      !is_of_this_user(socket))
    return {};
  return socket;
}

Descriptor accept_from(const Descriptor& listening) {
  Descriptor socket(::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open() || is_of_this_user(socket)) return socket;
  errno = EPERM;
  return {};
}

std::string describe_peer(int socket) {
  const std::optional<ucred> peer = credentials(socket);
  return cat("local:", peer ? peer->pid : 0);
}

}  // namespace tandem::distribute
