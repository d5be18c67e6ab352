#include "tandem/distribute/internal/parameters/parameter_store.h"

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/distribute/internal/parameters/parameter_server.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

namespace tandem::distribute {
namespace {

/// Calls between servers, which stay on their way until the test delivers or loses them.
class Mail {
 public:
  void serve(const std::string& task, MethodTable* methods) { servers_[task] = methods; }
  Channel* channel(const std::string& to) {
    std::unique_ptr<Way>& way = ways_[to];
    if (!way) way = std::make_unique<Way>(*this, to);
    return way.get();
  }
  bool empty() const { return letters_.empty(); }
  void deliver() {
    const Letter letter = take();
    servers_.at(letter.to)->call(letter.method, letter.request, {}, letter.done);
  }
  void lose() { take().done({Code::kUnavailable, "is lost"}, {}); }
  /// It arrives, but the answer is lost.
  void deliver_in_vain() {
    const Letter letter = take();
    servers_.at(letter.to)->call(letter.method, letter.request, {}, [](Status, Bytes) {});
    letter.done({Code::kUnavailable, "is lost"}, {});
  }

 private:
  struct Letter {
    std::string to;
    std::string method;
    Bytes request;
    ReplyDone done;
  };
  class Way final : public Channel {
   public:
    Way(Mail& mail, std::string to) : mail_(mail), to_(std::move(to)) {}
    void call(const char* method, Bytes request, const CallOptions&, ReplyDone done) override {
      mail_.letters_.push_back({to_, method, std::move(request), std::move(done)});
    }

   private:
    Mail& mail_;
    const std::string to_;
  };
  Letter take() {
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

  std::map<std::string, MethodTable*> servers_;
  std::map<std::string, std::unique_ptr<Way>> ways_;
  std::deque<Letter> letters_;
};

/// Three parameter servers; the test is their chief and their worker. The variables are those of
/// "a".
class ReplicationTest : public testing::Test {
 protected:
  struct Task {
    MethodTable methods;
    std::unique_ptr<ParameterServer> server;
  };
  explicit ReplicationTest(int replicas_to_aggregate = 0) {
    for (const char* name : {"a", "b", "c"}) {
      Task& task = tasks_[name];
      ParameterServer::Options options;
      options.task = name;
      options.replicas = 2;
      options.channel = [this](const std::string& other) { return mail.channel(other); };
      task.server = std::make_unique<ParameterServer>(options);
      task.server->add_to(task.methods);
      mail.serve(name, &task.methods);
    }
    proto::CreateParametersRequest request;
    request.home = "a";
    request.optimizer.make().name = "sgd";
    request.optimizer.make().learning_rate = 1;
    request.replicas_to_aggregate = replicas_to_aggregate;
    Bytes bytes = write_message(request);
    append_named_tensor_field(bytes, 1, "w", Array::zeros(DType::kFloat, Shape{}));
    proto::CreateParametersResponse response;
    read(call("a", kCreateParameters, bytes), response);
    state_id_ = response.state_id;
  }

  struct Answer {
    Status status;
    Bytes reply;
  };
  using Pending = std::shared_ptr<std::optional<Answer>>;
  Pending call(const std::string& task, const char* method, Bytes request) {
    const auto pending = std::make_shared<std::optional<Answer>>();
    tasks_.at(task).methods.call(method, std::move(request), {},
                                 [pending](Status status, Bytes reply) {
                                   *pending = {std::move(status), std::move(reply)};
                                 });
    return pending;
  }
  template <class M>
  static void read(const Pending& pending, M& message) {
    ASSERT_TRUE(pending->has_value());
    ASSERT_TRUE((*pending)->status.ok()) << (*pending)->status.message;
    read_message((*pending)->reply, message);
  }

  /// Sends a view to the first task of the chain, or to `to`. Whether it is accepted.
  bool set_view(std::int64_t epoch, const std::vector<std::string>& chain, bool confirmed,
                const std::string& to = {}) {
    proto::SetViewRequest request;
    request.home = "a";
    request.view.make().epoch = epoch;
    request.view.make().chain = chain;
    request.confirmed = confirmed;
    proto::ReplicaResponse response;
    read(call(to.empty() ? chain.front() : to, kSetView, write_message(request)), response);
    return response.accepted;
  }
  /// A gradient of 1, as number `sequence`.
  Pending push(const std::string& task, std::int64_t sequence) {
    proto::PushRequest request;
    request.home = "a";
    request.state_id = state_id_;
    request.coordinator = "chief";
    request.sequence = sequence;
    request.term = term;
    Bytes bytes = write_message(request);
    append_named_tensor_field(bytes, 6, "w", Array::scalar(1.0f));
    return call(task, kPushGradients, std::move(bytes));
  }
  static bool is_acknowledged(const Pending& pushed) {
    return pushed->has_value() && (*pushed)->status.ok();
  }
  float value(const std::string& task) {
    Bytes reply;
    const proto::PullResponse pulled = pull(task, reply);
    if (pulled.parameter.size() != 1) return -1;
    return -read_tensor(pulled.parameter[0].value, nullptr).data<float>()[0];
  }
  /// Whether the task says that it cannot reach the next one.
  bool is_broken(const std::string& task) {
    const Pending described = call(task, kDescribeParameters, {});
    proto::DescribeResponse response;
    read(described, response);
    for (const proto::ReplicaState& state : response.state) {
      if (state.home == "a") return state.broken;
    }
    return false;
  }
  std::string pull_term(const std::string& task) {
    Bytes reply;
    return pull(task, reply).term;
  }

  Mail mail;
  std::string term;  // of pushes

 private:
  /// A view into `reply`.
  proto::PullResponse pull(const std::string& task, Bytes& reply) {
    proto::PullRequest request;
    request.home = "a";
    request.state_id = state_id_;
    request.name = {"w"};
    const Pending pulled = call(task, kPullParameters, write_message(request));
    proto::PullResponse response;
    read(pulled, response);
    if (pulled->has_value()) reply = (*pulled)->reply;
    return response;
  }
  std::map<std::string, Task> tasks_;
  std::string state_id_;
};

TEST_F(ReplicationTest, APushIsAcknowledgedOnceTheReplicaHasIt) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  const auto pushed = push("a", 0);
  EXPECT_FALSE(is_acknowledged(pushed));
  mail.deliver();
  EXPECT_TRUE(is_acknowledged(pushed));
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_EQ(value("b"), 1);
}

// "a" has applied the push in a view that was replaced, so that no other task has it.
TEST_F(ReplicationTest, ARepeatedPushIsAcknowledgedOnceTheTasksOfTheViewHaveIt) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  const auto pushed = push("a", 0);
  ASSERT_TRUE(set_view(2, {"b"}, false));
  mail.deliver();  // "b" refuses what comes from view 1
  ASSERT_TRUE(pushed->has_value());
  EXPECT_EQ((*pushed)->status.code, Code::kUnavailable);
  // Before "b" has answered it is lost, so that view 2 is taken back.
  ASSERT_TRUE(set_view(3, {"a", "c"}, false));
  const auto repeated = push("a", 0);
  EXPECT_FALSE(is_acknowledged(repeated));
  ASSERT_TRUE(set_view(3, {"a", "c"}, true));
  EXPECT_FALSE(is_acknowledged(repeated));
  mail.deliver();
  EXPECT_TRUE(is_acknowledged(repeated));
  ASSERT_TRUE(set_view(4, {"c"}, true));
  EXPECT_EQ(value("c"), 1);
}

TEST_F(ReplicationTest, ATaskThatTakesOverAcknowledgesNothingBeforeTheViewIsConfirmed) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  push("a", 0);
  mail.deliver_in_vain();
  ASSERT_TRUE(set_view(2, {"b"}, false));
  const auto repeated = push("b", 0);
  EXPECT_FALSE(is_acknowledged(repeated));
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_TRUE(is_acknowledged(repeated));
  EXPECT_EQ(value("b"), 1);
}

// "b" has applied a push as the first task of view 2 when the chief gives the variables back to
// "a"; then what the chief had sent before arrives.
TEST_F(ReplicationTest, ALateViewDoesNotBringBackATaskThatWasReplaced) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  ASSERT_TRUE(set_view(2, {"b", "a"}, false));
  const auto pushed = push("b", 0);
  EXPECT_FALSE(set_view(5, {"a", "c"}, true, "b"));
  ASSERT_TRUE(pushed->has_value());
  EXPECT_EQ((*pushed)->status.code, Code::kUnavailable);
  EXPECT_FALSE(set_view(3, {"b", "c"}, false));
  EXPECT_FALSE(set_view(4, {"b"}, true));
  const auto repeated = push("b", 0);
  ASSERT_TRUE(repeated->has_value());
  EXPECT_EQ((*repeated)->status.code, Code::kUnavailable);
  // It is a replica again as one that has nothing.
  ASSERT_TRUE(set_view(6, {"a", "b"}, true));
  while (!mail.empty()) mail.deliver();
  ASSERT_TRUE(set_view(7, {"b"}, true));
  EXPECT_EQ(value("b"), 0);
}

TEST_F(ReplicationTest, LostMessagesToTheNextTaskAreSentAgain) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.lose();
  mail.deliver_in_vain();
  const auto first = push("a", 0);
  mail.deliver();  // the state, which "b" has already
  mail.lose();
  mail.deliver_in_vain();
  const auto second = push("a", 1);
  mail.deliver();
  mail.deliver();
  EXPECT_TRUE(is_acknowledged(first));
  EXPECT_TRUE(is_acknowledged(second));
  EXPECT_TRUE(mail.empty());
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_EQ(value("b"), 2);
}

// "b" is there, but two of three messages to it are lost.
TEST_F(ReplicationTest, MessagesThatAreOftenLostAreSentMoreOften) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver();
  for (int sequence = 0; sequence < 50; ++sequence) {
    const auto pushed = push("a", sequence);
    mail.lose();
    mail.deliver_in_vain();
    mail.deliver();
    ASSERT_TRUE(is_acknowledged(pushed)) << sequence;
  }
  const auto pushed = push("a", 50);
  for (int lost = 0; lost < 2 * LossEstimate::kMinPatience; ++lost) {
    ASSERT_FALSE(mail.empty());
    mail.lose();
  }
  EXPECT_FALSE(is_broken("a"));
  ASSERT_FALSE(mail.empty());
  mail.deliver();
  EXPECT_TRUE(is_acknowledged(pushed));
  // The chief is asked in the end all the same.
  push("a", 51);
  while (!mail.empty()) mail.lose();
  EXPECT_TRUE(is_broken("a"));
}

// What the first view has learnt holds in the next one: the state is not sent in vain again.
TEST_F(ReplicationTest, ALinkThatWasGivenUpTooSoonIsGivenMoreTimeInTheNextView) {
  int attempts = 0;
  for (int view = 1; view < 40; view += 2) {
    ASSERT_TRUE(set_view(view, {"a", "b"}, true));
    for (attempts = 0; !mail.empty(); ++attempts) mail.lose();
    EXPECT_TRUE(is_broken("a"));
    ASSERT_TRUE(set_view(view + 1, {"a", "b"}, true));
    mail.deliver();
    EXPECT_FALSE(is_broken("a"));
  }
  EXPECT_GT(attempts, 2 * LossEstimate::kMinPatience);
}

// A server that is killed before its log has the view must not have left its state at a replica:
// started again, it would not know of it, and go on alone.
TEST(DurableReplicationTest, TheReplicaGetsTheStateOnceTheViewIsInTheLog) {
  Mail mail;
  std::deque<std::function<void()>> writes;
  const auto write_all = [&writes] {
    while (!writes.empty()) {
      const std::function<void()> write = std::move(writes.front());
      writes.pop_front();
      write();
    }
  };
  const std::string folder = testing::TempDir() + "durable_replication";
  std::filesystem::remove_all(folder);
  ParameterServer::Options options;
  options.task = "a";
  options.folder = folder;
  options.replicas = 2;
  options.channel = [&mail](const std::string& other) { return mail.channel(other); };
  options.run_later = [&writes](std::function<void()> work) { writes.push_back(std::move(work)); };
  ParameterServer server(options);
  MethodTable methods;
  server.add_to(methods);

  proto::CreateParametersRequest create;
  create.home = "a";
  create.optimizer.make().name = "sgd";
  create.optimizer.make().learning_rate = 1;
  Bytes bytes = write_message(create);
  append_named_tensor_field(bytes, 1, "w", Array::zeros(DType::kFloat, Shape{}));
  bool created = false;
  methods.call(kCreateParameters, std::move(bytes), {},
               [&created](const Status& status, Bytes) { created = status.ok(); });
  write_all();
  ASSERT_TRUE(created);

  proto::SetViewRequest view;
  view.home = "a";
  view.view.make().epoch = 1;
  view.view.make().chain = {"a", "b"};
  view.confirmed = true;
  methods.call(kSetView, write_message(view), {},
               [](const Status& status, Bytes) { EXPECT_TRUE(status.ok()) << status.message; });
  EXPECT_FALSE(writes.empty());
  EXPECT_TRUE(mail.empty());
  write_all();
  EXPECT_FALSE(mail.empty());
  server.close();
}

class AggregationTest : public ReplicationTest {
 protected:
  AggregationTest() : ReplicationTest(2) {}
};

// A worker that was paused pushes after the one that has taken its place.
TEST_F(AggregationTest, CallsThatPushOneUpdateAreAllAnswered) {
  term = pull_term("a");
  const auto late = push("a", 0), first = push("a", 0);
  EXPECT_FALSE(late->has_value());
  EXPECT_FALSE(first->has_value());
  const auto second = push("a", 1);
  EXPECT_TRUE(is_acknowledged(late));
  EXPECT_TRUE(is_acknowledged(first));
  EXPECT_TRUE(is_acknowledged(second));
  EXPECT_EQ(value("a"), 1);  // the mean
}

}  // namespace
}  // namespace tandem::distribute
