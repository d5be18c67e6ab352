#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>

#include "tandem/cli/commands.h"
#include "tandem/cli/distribute_library.h"
#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

// SIGTERM and SIGINT write a byte that `wait` reads. They are handled rather than blocked, since
// libraries may have started threads before this one could block signals for them.
class EndingSignals {
 public:
  EndingSignals() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw InternalError("pipe2: no pipe for signals.");
    read_ = ends[0];
    write_ = ends[1];
    struct sigaction action = {};
    action.sa_handler = [](int) {
      const int error = errno;
      const char byte = 0;
      static_cast<void>(!::write(write_, &byte, 1));
      errno = error;
    };
    for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
  }
  void wait() const {
    char byte;
    while (::read(read_, &byte, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  int read_ = -1;
  static inline int write_ = -1;  // for the handler; open until the process ends
};

// What is given, completed by what the environment says.
distribute::Server::Options options_of(const ServerArguments& arguments,
                                       const distribute::Commands& library) {
  distribute::Server::Options options;
  options.job = arguments.job;
  options.task = arguments.task;
  options.port = arguments.port;
  options.durable = arguments.durable;
  options.metrics_port = arguments.metrics_port;
  options.security = {arguments.tls_cert, arguments.tls_key, arguments.tls_ca, arguments.insecure};
  if (!arguments.threads.empty()) {
    options.inter_op_threads = arguments.threads[0];
    options.intra_op_threads = arguments.threads[1];
  }
  if (!arguments.cluster.empty()) {
    options.cluster = library.parse_cluster(arguments.cluster);
  } else if (!arguments.cluster_file.empty()) {
    options.cluster = library.resolve_file(arguments.cluster_file).cluster();
  } else if (arguments.job.empty()) {
    const distribute::ClusterResolver here = library.resolve_environment();
    if (!here.is_task()) {
      throw UsageError(
          "the environment says which cluster there is, but not which of its tasks this is: give "
          "--job and --task");
    }
    options.cluster = here.cluster();
    options.job = here.job();
    options.task = here.task();
  }
  if (options.job.empty()) throw UsageError("--job and --task are required with a cluster");
  return options;
}

}  // namespace

void run_server(const ServerArguments& arguments) {
  const EndingSignals ending;
  const distribute::Commands& library = distribute_library();
  library.serve(
      options_of(arguments, library), std::chrono::milliseconds(10'000),
      [](const std::string& description) { std::cout << description << std::endl; },
      [&ending] {
        ending.wait();
        std::cerr << "td: ends after the calls in progress\n";
      });
}

}  // namespace tandem::cli
