#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/cli/model_signature.h"
#include "tandem/cli/step_arguments.h"

// The commands of td and their arguments. Each writes its results to std::cout and throws
// td::Error on failure. How they are written on a command line: arguments.cpp.

namespace tandem::cli {

/// The arguments make no sense: reported with a pointer to --help.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Writes why a command failed to std::cerr.
void report_error(const std::exception_ptr& error);

struct OpsArguments {
  std::string name;          ///< the op; empty: all
  std::string kernel_class;  ///< only ops with a kernel for devices of this class
  bool json = false;
};
void run_ops(const OpsArguments& arguments);

struct DevicesArguments {
  bool json = false;
};
void run_devices(const DevicesArguments& arguments);

/// How tasks of a cluster trust each other: files of PEM, all or none.
struct TlsArguments {
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
};

struct RunArguments : TlsArguments {
  std::string graph;
  SavedModelArguments saved_model;   ///< instead of a graph
  std::vector<std::string> feeds;    ///< "x:0=file.npy"
  std::vector<std::string> fetches;  ///< "y:0"
  std::vector<std::string> targets;
  std::vector<std::string> inits;  ///< in the order in which they run
  int steps = 1;
  int repeat = 1;
  std::optional<double> timeout;  ///< seconds, of each step
  std::string device;
  std::vector<int> threads;  ///< none, or inter and intra
  std::string out;
  bool json = false;
  bool no_optimize = false;
};
void run_graph(const RunArguments& arguments);

struct GraphArguments {
  std::string graph;
  bool dot = false;
  bool html = false;
  bool json = false;
  bool optimized = false;
};
void show_graph(const GraphArguments& arguments);

struct SimulateArguments : StepArguments {
  bool json = false;
  const char* policy_name() const { return policy.empty() ? "greedy" : policy.c_str(); }
};
void run_simulate(const SimulateArguments& arguments);

struct ExplainArguments : StepArguments, TlsArguments {
  std::string html;
  std::size_t rows = 60;
  int measure = 0;  ///< steps to run
  bool json = false;
  bool dot = false;
  bool no_advice = false;
};
void run_explain(const ExplainArguments& arguments);

struct DataBenchArguments {
  std::string library;
  double seconds = 5;  ///< 0: to the end of the dataset
  std::int64_t elements = 0;
  double step_ms = 0;
  bool json = false;
};
void run_data_bench(const DataBenchArguments& arguments);

struct InspectArguments {
  std::string path;
  std::string other;  ///< empty: nothing to compare with
  bool json = false;
  bool stats = false;
};
/// Returns the exit code: 1 where two files differ.
int run_inspect(const InspectArguments& arguments);

struct ConvertArguments {
  std::string from;
  std::string to;
};
void run_convert(const ConvertArguments& arguments);

struct ServerArguments : TlsArguments {
  std::string job;
  int task = 0;
  std::string cluster;       ///< "ps=h1:2222;worker=h2:2222"
  std::string cluster_file;  ///< else this, else the environment
  std::string etcd;          ///< or the members that an etcd knows: its "host:port"
  std::string etcd_cluster = "tandem";
  std::string address;  ///< this task's, for etcd
  int port = -1;        ///< in place of the cluster's; 0: a free one
  bool insecure = false;
  int metrics_port = -1;     ///< -1: none
  int replicas = 1;          ///< tasks that hold each parameter
  double heartbeat = 10;     ///< seconds
  std::string durable;       ///< folder for the updates of parameters; "": none
  std::vector<int> threads;  ///< none, or inter and intra
};
/// Serves until SIGTERM or SIGINT.
void run_server(const ServerArguments& arguments);

struct ClusterStatusArguments : TlsArguments {
  std::string target;  ///< "grpc://host:port" of any task
  bool json = false;
};
void show_cluster_status(const ClusterStatusArguments& arguments);

}  // namespace tandem::cli
