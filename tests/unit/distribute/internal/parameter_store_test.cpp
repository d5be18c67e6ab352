#include "tandem/distribute/internal/parameters/parameter_store.h"

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/distribute/internal/replicated_servers.h"

namespace tandem::distribute {
namespace {

TEST_F(ReplicationTest, APushIsAcknowledgedOnceTheReplicaHasIt) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
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
  mail.deliver_all();
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
  mail.deliver_all();
  EXPECT_TRUE(is_acknowledged(repeated));
  ASSERT_TRUE(set_view(4, {"c"}, true));
  EXPECT_EQ(value("c"), 1);
}

TEST_F(ReplicationTest, ATaskThatTakesOverAcknowledgesNothingBeforeTheViewIsConfirmed) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
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
  mail.deliver_all();
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
  mail.deliver_all();
  ASSERT_TRUE(set_view(7, {"b"}, true));
  EXPECT_EQ(value("b"), 0);
}

// The first copy of each message is lost, and the answer to the second.
TEST_F(ReplicationTest, LostMessagesToTheNextTaskAreSentAgain) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  const auto first = push("a", 0);
  mail.deliver_third_copies();
  const auto second = push("a", 1);
  mail.deliver_third_copies();
  EXPECT_TRUE(is_acknowledged(first));
  EXPECT_TRUE(is_acknowledged(second));
  ASSERT_TRUE(set_view(2, {"b"}, true));
  EXPECT_EQ(value("b"), 2);
}

// "b" is there, but two of three messages to it are lost.
TEST_F(ReplicationTest, MessagesThatAreOftenLostAreSentMoreOften) {
  ASSERT_TRUE(set_view(1, {"a", "b"}, true));
  mail.deliver_all();
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
    mail.deliver_all();
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
