#include "tandem/distribute/remote_session.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/master/step_signature.h"
#include "tandem/distribute/internal/rpc/task_network.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {
namespace {

class GrpcSession final : public RemoteSession {
 public:
  GrpcSession(const std::string& target, std::string_view graph_def, const Options& options)
      : network_({options.security.certificate, options.security.key, options.security.authority}),
        channel_(network_.channel(address_of_target(target))) {
    proto::ConfigProto config;
    config.device_filters = options.device_filters;
    config.allow_soft_placement = options.soft_placement;
    config.isolate_session_state = options.isolate_state;
    const std::string config_bytes = io::proto::WireWriter::write(config);
    proto::CreateSessionRequest request;
    request.graph_def = graph_def;
    request.config = config_bytes;
    request.target = target;
    Bytes reply = blocking_call(*channel_, "/tensorflow.MasterService/CreateSession",
                                write_message(request), {.timeout = options.timeout});
    proto::CreateSessionResponse response;
    read_message(reply, response);
    handle_ = response.session_handle;
    version_ = response.graph_version;
  }

  ~GrpcSession() override {
    proto::CloseSessionRequest request;
    request.session_handle = handle_;
    try {
      blocking_call(*channel_, "/tensorflow.MasterService/CloseSession", write_message(request),
                    {.timeout = std::chrono::seconds(10)});
    } catch (const Error&) {  // the server is gone, and the session with it
    }
  }

  void extend(StringView graph_def) override {
    proto::ExtendSessionRequest request;
    request.session_handle = handle_;
    request.graph_def = graph_def;
    request.current_graph_version = version_;
    Bytes reply =
        blocking_call(*channel_, "/tensorflow.MasterService/ExtendSession", write_message(request));
    proto::ExtendSessionResponse response;
    read_message(reply, response);
    version_ = response.new_graph_version;
  }

  std::vector<Array> run(const std::vector<Feed>& feeds, const StringList& fetches,
                         const StringList& targets, const RunOptions& options) override {
    Bytes request;
    for (const auto& [name, value] : feeds)
      append_named_tensor_field(request, 2, tensor_name(name), value);
    proto::RunStepRequest message;
    message.session_handle = handle_;
    for (const std::string& name : fetches) message.fetch.push_back(tensor_name(name));
    message.target = targets;
    proto::RunOptions& run_options = message.options.make();
    if (options.timeout) {
      run_options.timeout_in_ms = std::max<std::int64_t>(
          1, std::chrono::duration_cast<std::chrono::milliseconds>(*options.timeout).count());
    }
    message.store_errors_in_response_body = true;
    message.request_id = new_request_id();
    request.append(write_message(message));
    Bytes reply = blocking_call(*channel_, "/tensorflow.MasterService/RunStep", std::move(request),
                                {.timeout = options.timeout});
    proto::RunStepResponse response;
    read_message(reply, response);
    if (response.status_code != 0)
      throw_error(static_cast<Code>(response.status_code), response.status_error_message);
    std::map<std::string, Array> values;
    for (const proto::NamedTensor& tensor : response.tensor)
      values[tensor.name] = read_tensor(tensor.tensor, reply.owner());
    std::vector<Array> results;
    for (const std::string& name : message.fetch) {
      const auto found = values.find(name);
      if (found == values.end())
        throw InternalError(cat("The server's answer lacks the fetch '", name, "'."));
      results.push_back(found->second);
    }
    return results;
  }

 private:
  TaskNetwork network_;
  const std::shared_ptr<Channel> channel_;
  std::string handle_;
  std::atomic<std::int64_t> version_{0};
};

}  // namespace

RemoteSession::~RemoteSession() = default;

std::unique_ptr<RemoteSession> RemoteSession::open(const String& target, StringView graph_def) {
  return open(target, graph_def, Options{});
}
std::unique_ptr<RemoteSession> RemoteSession::open(const String& target, StringView graph_def,
                                                   const Options& options) {
  if (address_of_target(target).empty())
    throw InvalidArgumentError("A session needs a target such as grpc://localhost:2222, not ''.");
  return std::make_unique<GrpcSession>(target, graph_def, options);
}

}  // namespace tandem::distribute
