#pragma once

#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/io/graph_def.h"
#include "tandem/io/graph_export.h"

#include "tests/unit/distribute/internal/in_process_cluster.h"

namespace tandem::fuzz {

/// In place of a session's handle, which differs from run to run.
constexpr std::string_view kAnyHandle = "0123456789abcdef";

/// A cluster in this process, whose worker has a master's session, a worker's session, and a graph
/// in both.
class RequestedCluster {
 public:
  /// The status of one request. Ends the process if there is no answer, even once the caller is
  /// gone.
  distribute::Status request(const std::string& method, const std::string& bytes) {
    const auto answer = std::make_shared<std::promise<distribute::Status>>();
    std::future<distribute::Status> status = answer->get_future();
    const distribute::CallContext context;
    task_.methods.call("/tensorflow." + method, distribute::Bytes(bytes), context,
                       [answer](distribute::Status ended, distribute::Bytes reply) {
                         reply.flat();
                         answer->set_value(std::move(ended));
                       });
    if (status.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
      context.cancellation->cancel();
    if (status.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      std::cerr << method << " is not answered\n";
      std::abort();
    }
    return status.get();
  }

  /// Makes what earlier requests have ended, and ends what they have made. Returns the handle of
  /// the master's session.
  std::string prepare() {
    std::string handle;
    for (const auto& session : task_.master.sessions()) {
      if (session->handle() == handle_)
        handle = handle_;
      else
        session->close();
    }
    if (handle.empty()) handle_ = open();
    const std::string worker_session(kAnyHandle);
    if (!task_.worker.find_session(worker_session)) {
      task_.worker.create_session(worker_session, false);
      distribute::proto::RegisterGraphRequest graph;
      graph.session_handle = worker_session;
      graph.create_worker_session_called = true;
      graph.graph_def = graph_;
      request("WorkerService/RegisterGraph", io::proto::WireWriter::write(graph));
    }
    return handle_;
  }

 private:
  std::string open() {
    distribute::proto::CreateSessionRequest wanted;
    wanted.graph_def = graph_;
    auto [status, reply] = distribute::call(task_, "/tensorflow.MasterService/CreateSession",
                                            distribute::write_message(wanted));
    distribute::proto::CreateSessionResponse response;
    distribute::read_message(reply, response);
    if (!status.ok() || response.session_handle.size() != kAnyHandle.size()) std::abort();
    return std::string(response.session_handle);
  }

  static std::string graph() {
    io::ImportOptions options;
    options.format = io::GraphFormat::kText;
    return io::export_graph_def(io::import_graph_def(R"(
        node { name: "x" op: "Placeholder" device: "/job:worker/replica:0/task:0/device:CPU:0"
               attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "y" op: "AddV2" input: "x" input: "x"
               device: "/job:worker/replica:0/task:0/device:CPU:0"
               attr { key: "T" value { type: DT_FLOAT } } })",
                                                     options))
        .bytes;
  }

  const std::string graph_ = graph();
  distribute::InProcessCluster cluster_{"ps=ps:1;worker=worker:1"};
  distribute::InProcessCluster::Task& task_ = cluster_.task("worker", 0);
  std::string handle_;
};

/// A request to a master or a worker: a byte for the method, and the message. Whatever the bytes, a
/// status comes of it, and the cluster goes on.
inline void cluster_requests(std::string_view bytes) {
  static RequestedCluster cluster;
  if (bytes.empty()) return;
  const std::size_t method = static_cast<unsigned char>(bytes[0]) % std::size(distribute::kMethods);
  std::string message(bytes.substr(1));
  const std::string handle = cluster.prepare();
  // A worker's session has that name itself.
  if (method < 10) {
    for (std::size_t at = 0; (at = message.find(kAnyHandle, at)) != std::string::npos;)
      message.replace(at, handle.size(), handle);
  }
  cluster.request(distribute::kMethods[method], message);
}

}  // namespace tandem::fuzz
