// Masters and workers without a network between: what they answer to requests of every kind.

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_export.h"

#include "tests/unit/distribute/internal/in_process_cluster.h"

namespace tandem::distribute {
namespace {

using testing::HasSubstr;

std::string full(const std::string& method) { return "/tensorflow." + method; }

std::string graph_of_text(const std::string& text) {
  io::ImportOptions options;
  options.format = io::GraphFormat::kText;
  return io::export_graph_def(io::import_graph_def(text, options)).bytes;
}

// y = x * v on the PS, where v is read; x is fed.
std::string cluster_graph() {
  return graph_of_text(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "two" op: "Const" device: "/job:ps/task:0"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
    node { name: "y" op: "Mul" input: "x" input: "two" device: "/job:ps/task:0"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "z" op: "AddV2" input: "y" input: "x" device: "/job:worker/task:0"
           attr { key: "T" value { type: DT_FLOAT } } })");
}

std::string open_session(InProcessCluster::Task& task, const std::string& graph) {
  proto::CreateSessionRequest request;
  request.graph_def = graph;
  auto [status, reply] = call(task, full("MasterService/CreateSession"), write_message(request));
  EXPECT_TRUE(status.ok()) << status.message;
  proto::CreateSessionResponse response;
  read_message(reply, response);
  return response.session_handle;
}

struct Step {
  Status status;
  std::vector<Array> values;
};
Step run_step(InProcessCluster::Task& task, const std::string& session, const std::string& feed,
              const Array& value, const std::vector<std::string>& fetches,
              std::int64_t request_id = 0) {
  Bytes request;
  if (!feed.empty()) append_named_tensor_field(request, 2, feed, value);
  proto::RunStepRequest message;
  message.session_handle = session;
  message.fetch = fetches;
  message.request_id = request_id;
  request.append(write_message(message));
  auto [status, reply] = call(task, full("MasterService/RunStep"), std::move(request));
  Step step{std::move(status), {}};
  proto::RunStepResponse response;
  read_message(reply, response);
  for (const auto& tensor : response.tensor)
    step.values.push_back(read_tensor(tensor.tensor, reply.owner()));
  return step;
}

TEST(ServicesTest, AStepOverTwoTasks) {
  InProcessCluster cluster("ps=a:1;worker=b:1");
  auto& master = cluster.task("worker", 0);
  const std::string session = open_session(master, cluster_graph());
  for (int i = 0; i < 3; ++i) {
    const Step step = run_step(master, session, "x:0", Array::scalar(3.0f), {"z:0", "y:0"});
    ASSERT_TRUE(step.status.ok()) << step.status.message;
    EXPECT_EQ(step.values[0].values<float>()[0], 6.0f);  // sorted by name
    EXPECT_EQ(step.values[1].values<float>()[0], 9.0f);
  }
  // Nothing of a step that has ended stays anywhere.
  EXPECT_TRUE(master.worker.steps().ids().empty());
  EXPECT_TRUE(cluster.task("ps", 0).worker.steps().ids().empty());
  proto::CloseSessionRequest close;
  close.session_handle = session;
  EXPECT_TRUE(call(master, full("MasterService/CloseSession"), write_message(close)).first.ok());
  EXPECT_TRUE(cluster.task("ps", 0).worker.sessions().empty());
}

TEST(ServicesTest, ErrorsOfSteps) {
  InProcessCluster cluster("ps=a:1;worker=b:1");
  auto& master = cluster.task("worker", 0);
  const std::string session = open_session(master, cluster_graph());
  const Array x = Array::scalar(1.0f);
  const auto expect = [&](const Step& step, Code code, const std::string& text) {
    EXPECT_EQ(step.status.code, code) << step.status.message;
    EXPECT_THAT(step.status.message, HasSubstr(text));
  };
  expect(run_step(master, session, "x:0", x, {"zz:0"}), Code::kNotFound,
         "FetchOutputs node zz:0: not found");
  expect(run_step(master, session, "x:0", x, {"y:3"}), Code::kInvalidArgument,
         "FetchOutputs y:3: output index too large, must be < 1");
  expect(run_step(master, session, "q:0", x, {"y:0"}), Code::kNotFound,
         "FeedInputs: unable to find feed output q:0");
  expect(run_step(master, session, "x:0", x, {"x:0"}), Code::kInvalidArgument,
         "x:0 is both fed and fetched.");
  expect(run_step(master, session, "x:0", x, {}), Code::kInvalidArgument,
         "Must specify at least one target to fetch or execute.");
  expect(run_step(master, session, "", x, {"y:0"}), Code::kInvalidArgument,
         "You must feed a value for placeholder tensor 'x' with dtype float");
  expect(run_step(master, session, "x:0", Array::scalar(1), {"y:0"}), Code::kInternal,
         "Output 0 of type int32 does not match declared output type float for node {{node "
         "_recv_x_0}}");
  expect(run_step(master, "deadbeef", "x:0", x, {"y:0"}), Code::kAborted,
         "Session deadbeef is not found.");
  // A name without an index is the first output.
  EXPECT_TRUE(run_step(master, session, "x", x, {"y"}).status.ok());
  EXPECT_TRUE(run_step(master, session, "x:0", x, {"y:0"}, 77).status.ok());
  expect(run_step(master, session, "x:0", x, {"y:0"}, 77), Code::kAborted, "received twice");
}

TEST(ServicesTest, AGraphIsExtendedByItsVersion) {
  InProcessCluster cluster("worker=b:1");
  auto& master = cluster.task("worker", 0);
  const std::string first = graph_of_text(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } })");
  proto::GraphParts parts;
  read_part(first, parts);
  const std::string session = open_session(master, first);
  const auto extend = [&](std::string_view graph, std::int64_t version) {
    proto::ExtendSessionRequest request;
    request.session_handle = session;
    request.graph_def = graph;
    request.current_graph_version = version;
    return call(master, full("MasterService/ExtendSession"), write_message(request)).first;
  };
  EXPECT_EQ(extend(first, 9).message, "Current version is 0 but caller expected 9.");
  EXPECT_THAT(extend(first, 0).message, HasSubstr("includes node 'x', which was created by"));
}

TEST(ServicesTest, UnknownOpsAreNotFound) {
  InProcessCluster cluster("worker=b:1");
  proto::CreateSessionRequest request;
  // A node "z" of op "NoOpZZ".
  request.graph_def = std::string_view("\x0a\x0b\x0a\x01z\x12\x06NoOpZZ", 13);
  const Status status =
      call(cluster.task("worker", 0), full("MasterService/CreateSession"), write_message(request))
          .first;
  EXPECT_EQ(status.code, Code::kNotFound);
  EXPECT_THAT(status.message, HasSubstr("Op type not registered 'NoOpZZ' in binary running on"));
}

TEST(ServicesTest, EveryMethodAnswersEmptyAndDamagedRequests) {
  InProcessCluster cluster("ps=a:1;worker=b:1");
  auto& task = cluster.task("worker", 0);
  std::mt19937 random(1);
  for (const char* method : kMethods) {
    static_cast<void>(call(task, full(method), {}));
    for (int i = 0; i < 50; ++i) {
      std::string bytes(random() % 40, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      static_cast<void>(call(task, full(method), Bytes(bytes)));
    }
    // A field that announces more than there is.
    const Status status = call(task, full(method), Bytes("\x0a\xff\xff\xff\xff\x7f")).first;
    if (std::string_view(method) != "WorkerService/GetStatus" &&
        std::string_view(method) != "WorkerService/MarkRecvFinished" &&
        std::string_view(method) != "WorkerService/Tracing") {
      EXPECT_EQ(status.code, Code::kInvalidArgument) << method;
    }
  }
  EXPECT_EQ(call(task, "/tensorflow.MasterService/Nothing", {}).first.code, Code::kUnimplemented);
  // It still works.
  const std::string session = open_session(task, cluster_graph());
  EXPECT_TRUE(run_step(task, session, "x:0", Array::scalar(1.0f), {"z:0"}).status.ok());
}

TEST(ServicesTest, ReceivesCheckTheKeyAndItsIncarnation) {
  InProcessCluster cluster("worker=b:1");
  auto& task = cluster.task("worker", 0);
  const auto receive = [&](const std::string& key, std::int64_t id = 0) {
    proto::RecvTensorRequest request;
    request.step_id = 7;
    request.rendezvous_key = key;
    request.request_id = id;
    return call(task, full("WorkerService/RecvTensor"), write_message(request)).first;
  };
  EXPECT_EQ(receive("bad").message, "Invalid  rendezvous key: bad");
  const std::string& device = task.runtime.devices().front()->name();
  const Status status = receive(device + ";00000000000000ff;" + device + ";t;0:0");
  EXPECT_EQ(status.code, Code::kAborted);
  EXPECT_THAT(status.message, HasSubstr("RecvTensor expects a different device incarnation: 255"));
  EXPECT_TRUE(task.worker.steps().ids().empty());
}

TEST(ServicesTest, WorkersKnowTheirSessionsAndGraphs) {
  InProcessCluster cluster("worker=b:1");
  auto& task = cluster.task("worker", 0);
  proto::RunGraphRequest run;
  run.session_handle = "s1";
  run.create_worker_session_called = true;
  const Status unknown = call(task, full("WorkerService/RunGraph"), write_message(run)).first;
  EXPECT_EQ(unknown.code, Code::kAborted);
  EXPECT_EQ(unknown.message,
            "Session handle is not found: s1. Possibly this worker "
            "(\"/job:worker/replica:0/task:0\") just restarted.");
  EXPECT_THAT(unknown.details, HasSubstr("WorkerPossiblyRestarted"));
  run.create_worker_session_called = false;
  run.graph_handle = "x";
  EXPECT_EQ(call(task, full("WorkerService/RunGraph"), write_message(run)).first.message,
            "Graph handle is not found: x");
  proto::CreateWorkerSessionRequest nameless;
  EXPECT_EQ(
      call(task, full("WorkerService/CreateWorkerSession"), write_message(nameless)).first.message,
      "Session must be non-empty.");
}

TEST(TensorMessageTest, ReadsWhatTensorFlowWrites) {
  // FLOAT, [2,2], tensor_content of 2.0 four times: a value that a worker of TensorFlow's sent.
  const std::string bytes(
      "\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\x22\x10\x00\x00\x00\x40\x00\x00\x00\x40"
      "\x00\x00\x00\x40\x00\x00\x00\x40",
      30);
  const Array value = read_tensor(bytes, nullptr);
  EXPECT_EQ(value.shape(), (Shape{2, 2}));
  EXPECT_EQ(value.values<float>()[3], 2.0f);
  EXPECT_EQ(write_tensor(value).flat(), bytes);
}

TEST(TensorMessageTest, StringsAreLengthsAndThenBytes) {
  const Array value = Array::vector(std::vector<std::string>{"ab", "cdef"});
  EXPECT_THAT(std::string(write_tensor(value).flat()), HasSubstr("\x02\x04"
                                                                 "abcdef"));
  EXPECT_EQ(read_tensor(write_tensor(value).flat(), nullptr), value);
}

TEST(TensorMessageTest, LargeContentsAreNotCopied) {
  const Array value = Array::zeros(DType::kFloat, Shape{100'000});
  Bytes message = write_tensor(value);
  ASSERT_EQ(message.pieces().size(), 2u);
  EXPECT_EQ(static_cast<const void*>(message.pieces()[1].memory.data()), value.raw_data());
  EXPECT_EQ(read_tensor(message.flat(), message.owner()), value);
}

TEST(TensorMessageTest, RefusesWhatContradictsItself) {
  for (const std::string& bytes :
       {std::string("\x08\x01\x12\x04\x12\x02\x08\x7f\x22\x01x", 11),  // 127 floats in a byte
        std::string("\x08\x01\x22\xff\xff\xff\xff\x7f", 8),            // cut off
        std::string("\x08\x14\x22\x01x", 5),                           // a resource
        std::string("\x08\x63", 2)}) {                                 // no dtype
    EXPECT_THROW(read_tensor(bytes, nullptr), Error);
  }
}

}  // namespace
}  // namespace tandem::distribute
