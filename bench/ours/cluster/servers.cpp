#include "bench/ours/cluster/servers.h"

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "bench/common/serve.h"

namespace bench {
namespace {

const std::vector<std::pair<std::string, int>> kTasks{{"ps", 0}, {"worker", 0}, {"worker", 1}};

// Addresses whose ports were free a moment ago.
std::vector<std::string> free_addresses(std::size_t count) {
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket, any, size) != 0 || ::getsockname(socket, any, &size) != 0)
      throw std::runtime_error("there is no free port");
    sockets.push_back(socket);
    addresses.push_back("localhost:" + std::to_string(ntohs(address.sin_port)));
  }
  for (const int socket : sockets) ::close(socket);
  return addresses;
}

}  // namespace

Servers::Servers(Kind kind) {
  const std::vector<std::string> addresses = free_addresses(kTasks.size());
  for (std::size_t i = 0; i < kTasks.size(); ++i)
    cluster_.set_address(kTasks[i].first, kTasks[i].second, addresses[i]);
  const std::string json = R"({"ps": [")" + addresses[0] + R"("], "worker": [")" + addresses[1] +
                           R"(", ")" + addresses[2] + R"("]})";
  const std::string threads = std::to_string(bench::threads());
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const char* root = std::getenv("TANDEM_BENCH_ROOT");
  const std::filesystem::path sources = root ? root : ".";
  for (const auto& [job, task] : kTasks) {
    if (kind == Kind::kTandem) {
      start({here / "../../bin/td", "server", "--job", job, "--task", std::to_string(task),
             "--cluster", cluster_.to_string(), "--threads", threads + "," + threads});
    } else {
      start({sources / "build/peers/tensorflow/bin/python",
             sources / "bench/peers/tensorflow_server.py", job, std::to_string(task), json,
             threads});
    }
  }
}

void Servers::start(const std::vector<std::string>& words) {
  std::array<int, 2> out{};
  if (::pipe(out.data()) != 0) throw std::runtime_error("there is no pipe to be had");
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    std::_Exit(127);
  }
  ::close(out[1]);
  processes_.push_back(pid);
  char first = 0;  // of "listening"
  const bool listens = ::read(out[0], &first, 1) == 1;
  // The pipe stays open: a server may print more.
  if (!listens) throw std::runtime_error(words[0] + " does not start");
}

Servers::~Servers() {
  for (const pid_t pid : processes_) ::kill(pid, SIGKILL);
  for (const pid_t pid : processes_) ::waitpid(pid, nullptr, 0);
}

}  // namespace bench
