// What a worker does with a closure, against parameter servers that answer as the test says.
#include "tandem/distribute/internal/parameters/closure_service.h"

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/distribute/internal/parameters/closure_graph.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"
#include "tandem/tandem.h"

#include "tests/unit/distribute/internal/in_process_cluster.h"

namespace tandem::distribute {
namespace {

/// A parameter server with one variable, a scalar.
class FakeServer {
 public:
  FakeServer(std::string variable, InProcessNetwork& network, const std::string& address)
      : variable_(std::move(variable)) {
    methods_.add(kPullParameters, [this](const Bytes&, const CallContext&, const ReplyDone& done) {
      ++pulls;
      proto::PullResponse response;
      response.version = pulls;
      response.term = "term";
      Bytes reply = write_message(response);
      append_named_tensor_field(reply, 2, variable_, Array::scalar(1.0f));
      done({}, std::move(reply));
    });
    methods_.add(kPushGradients, [this](const Bytes&, const CallContext&, const ReplyDone& done) {
      ++pushes;
      on_push(done);
    });
    network.serve(address, &methods_);
  }
  static void answer(const ReplyDone& done, bool stale) {
    proto::PushResponse response;
    response.stale = stale;
    done({}, write_message(response));
  }
  std::function<void(const ReplyDone& done)> on_push;
  int pulls = 0, pushes = 0;

 private:
  const std::string variable_;
  MethodTable methods_;
};

/// A worker, and a closure with a variable on each of two servers.
class ClosureServiceTest : public testing::Test {
 protected:
  Bytes wait_for(const char* method, Bytes request) {
    auto answer = std::make_shared<std::promise<std::pair<Status, Bytes>>>();
    methods_.call(method, std::move(request), CallContext(), [answer](Status status, Bytes reply) {
      answer->set_value({std::move(status), std::move(reply)});
    });
    auto future = answer->get_future();
    if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      ADD_FAILURE() << method << " hangs";
      return {};
    }
    auto [status, reply] = future.get();
    EXPECT_TRUE(status.ok()) << status.message;
    return std::move(reply);
  }
  void run(bool drop_stale) {
    service_.add_to(methods_);
    const Variable v(ones({}), {.name = "v"}), w(ones({}), {.name = "w"});
    const auto body = [&](std::span<const Tensor> in) {
      return std::vector{v.value() * w.value() * in[0]};
    };
    const ClosureGraph graph = make_closure_graph(body, {Tensor(1.0f)}, {v, w}, 2, true);
    proto::RegisterClosureRequest request;
    request.graph_def = graph.graph_def;
    request.coordinator = "chief";
    request.drop_stale = drop_stale;
    request.input = graph.inputs;
    request.output = graph.outputs;
    for (int s = 0; s < 2; ++s) {
      const auto at = static_cast<std::size_t>(s);
      request.server.emplace_back().task = task_name("ps", s);
      proto::ClosureParameter& parameter = request.parameter.emplace_back();
      parameter.feed = graph.parameters[at];
      parameter.gradient = graph.gradients[at];
      proto::ParameterShard& shard = parameter.shard.emplace_back();
      shard.name = s == 0 ? "v" : "w";
      shard.server = s;
    }
    proto::RegisterClosureResponse registered;
    Bytes reply = wait_for(kRegisterClosure, write_message(request));
    read_message(reply, registered);
    proto::RunClosureRequest running;
    running.handle = registered.handle;
    Bytes message = write_message(running);
    append_tensor_field(message, 4, Array::scalar(3.0f));
    wait_for(kRunClosure, std::move(message));
  }

  InProcessNetwork network_;
  FakeServer first_{"v", network_, "a:1"}, second_{"w", network_, "b:1"};

 private:
  const ClusterSpec cluster_ = ClusterSpec::parse("ps=a:1,b:1;worker=c:1");
  Runtime runtime_{{.inter_op_threads = 1, .intra_op_threads = 1, .task = task_name("worker", 0)}};
  const Peers peers_{cluster_, network_};
  Worker worker_{runtime_, task_name("worker", 0), peers_};
  Master master_{worker_, peers_};
  ClosureService service_{master_, peers_};
  MethodTable methods_;
};

// The first server has the push wait for another closure's, which waits for this one's on the
// second server: that says that it is stale, as after a replica has taken over.
TEST_F(ClosureServiceTest, AStalePushIsRepeatedAlthoughAnotherServerHasNotAnswered) {
  ReplyDone waiting;
  first_.on_push = [&](const ReplyDone& done) {
    if (first_.pushes == 1) {
      waiting = done;
      return;
    }
    FakeServer::answer(waiting, false);
    FakeServer::answer(done, false);
  };
  second_.on_push = [&](const ReplyDone& done) { FakeServer::answer(done, second_.pushes == 1); };
  run(false);
  EXPECT_EQ(first_.pushes, 2);
  EXPECT_EQ(second_.pushes, 2);
  EXPECT_EQ(second_.pulls, 2);
}

TEST_F(ClosureServiceTest, AStalePushThatIsDroppedIsNotRepeated) {
  ReplyDone waiting;
  first_.on_push = [&](const ReplyDone& done) { waiting = done; };
  second_.on_push = [](const ReplyDone& done) { FakeServer::answer(done, true); };
  run(true);
  EXPECT_EQ(second_.pushes, 1);
  ASSERT_TRUE(waiting);
  FakeServer::answer(waiting, false);
}

}  // namespace
}  // namespace tandem::distribute
