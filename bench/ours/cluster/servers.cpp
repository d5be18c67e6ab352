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

// Addresses whose ports were free a moment ago.
std::vector<std::string> free_addresses(int count) {
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
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

// All ports of a host are free.
std::vector<std::string> addresses_of_hosts(int count) {
  std::vector<std::string> addresses;
  for (int host = 1; host <= count; ++host)
    addresses.push_back(ShapedNetwork::address(host) + ":2222");
  return addresses;
}

// As tensorflow_server.py takes it.
std::string json_of(const tandem::distribute::ClusterSpec& cluster) {
  std::string json;
  for (const auto& [job, tasks] : cluster.jobs()) {
    std::string addresses;
    for (const auto& [task, address] : tasks)
      addresses += (addresses.empty() ? "" : ", ") + ('"' + address + '"');
    json += (json.empty() ? "" : ", ") + ('"' + job + "\": [" + addresses + "]");
  }
  return "{" + json + "}";
}

}  // namespace

Servers::Servers(Kind kind, const Options& options) : kind_(kind), network_(options.network) {
  const int count = options.ps + options.workers;
  const auto addresses = network_ ? addresses_of_hosts(count) : free_addresses(count);
  for (int t = 0; t < options.ps; ++t)
    cluster_.set_address("ps", t, addresses[static_cast<std::size_t>(t)]);
  for (int t = 0; t < options.workers; ++t)
    cluster_.set_address("worker", t, addresses[static_cast<std::size_t>(options.ps + t)]);
  for (int t = 0; t < options.ps; ++t) add("ps", t, options.ps_options);
  for (int t = 0; t < options.workers; ++t) add("worker", t, {});
  for (const Process& process : processes_) wait_until_it_listens(process);
}

void Servers::add(const std::string& job, int task, const std::vector<std::string>& options) {
  const std::string threads = std::to_string(bench::threads());
  const char* root = std::getenv("TANDEM_BENCH_ROOT");
  const std::filesystem::path sources = root ? root : ".";
  Process& process = processes_.emplace_back();
  process.task = {job, task};
  process.host = static_cast<int>(processes_.size());
  if (kind_ == Kind::kTandem) {
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    process.words = {here / "../../bin/td",
                     "server",
                     "--job",
                     job,
                     "--task",
                     std::to_string(task),
                     "--cluster",
                     cluster_.to_string(),
                     "--threads",
                     threads + "," + threads};
    if (network_) process.words.push_back("--insecure");
    process.words.insert(process.words.end(), options.begin(), options.end());
  } else {
    process.words = {sources / "build/peers/tensorflow/bin/python",
                     sources / "bench/peers/tensorflow_server.py",
                     job,
                     std::to_string(task),
                     json_of(cluster_),
                     threads};
  }
  start(process);
}

void Servers::start(Process& process) const {
  std::array<int, 2> out{};
  if (::pipe(out.data()) != 0) throw std::runtime_error("there is no pipe to be had");
  std::vector<char*> arguments;
  for (const std::string& word : process.words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  process.pid = ::fork();
  if (process.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out[1], STDOUT_FILENO);
    if (network_ && !network_->enter(process.host)) std::_Exit(127);
    ::execv(arguments[0], arguments.data());
    std::_Exit(127);
  }
  ::close(out[1]);
  process.out = out[0];  // it stays open: a server may print more
}

void Servers::wait_until_it_listens(const Process& process) {
  char first = 0;  // of "listening"
  if (::read(process.out, &first, 1) != 1)
    throw std::runtime_error(process.words[0] + " does not start");
}

Servers::Process& Servers::ps(int task) {
  for (Process& process : processes_) {
    if (process.task == std::pair<std::string, int>("ps", task)) return process;
  }
  throw std::runtime_error("there is no such parameter server");
}

void Servers::kill_ps(int task) {
  Process& process = ps(task);
  ::kill(process.pid, SIGKILL);
  ::waitpid(process.pid, nullptr, 0);
  ::close(std::exchange(process.out, -1));
  process.pid = -1;
}

void Servers::restart_ps(int task) { start(ps(task)); }

Servers::~Servers() {
  for (const Process& process : processes_) {
    if (process.pid > 0) ::kill(process.pid, SIGKILL);
  }
  for (const Process& process : processes_) {
    if (process.pid > 0) ::waitpid(process.pid, nullptr, 0);
    if (process.out >= 0) ::close(process.out);
  }
}

}  // namespace bench
