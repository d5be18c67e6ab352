#include "tandem/distribute/internal/client/replica_planner.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

const std::vector<std::string> kTasks{"a", "b"};

// What a server answers that holds the variables of "a" in a view of that epoch.
proto::DescribeResponse answer(const std::string& incarnation, std::int64_t epoch = -1,
                               bool linked = false) {
  proto::DescribeResponse response;
  response.incarnation = incarnation;
  if (epoch < 0) return response;
  proto::ReplicaState& state = response.state.emplace_back();
  state.home = "a";
  state.state_id = "state";
  state.view.make().epoch = epoch;
  state.active = true;
  state.linked = linked;
  return response;
}

class ReplicaPlannerTest : public testing::Test {
 protected:
  ReplicaPlannerTest() : planner(kTasks, 2) {
    planner.report("a", answer("a1", 0));
    planner.report("b", answer("b1"));
    planner.begin("a");
  }
  // The one view that is to be sent.
  ReplicaPlanner::Command command() {
    const auto commands = planner.plan();
    EXPECT_EQ(commands.size(), 1u);
    return commands.empty() ? ReplicaPlanner::Command{} : commands.front();
  }
  ReplicaPlanner planner;
};

TEST_F(ReplicaPlannerTest, TheOtherServerBecomesAReplica) {
  const auto first = command();
  EXPECT_EQ(first.task, "a");
  EXPECT_EQ(first.view.chain, kTasks);
  EXPECT_FALSE(first.confirmed);
  EXPECT_TRUE(planner.accepted(first));
  const auto confirmation = command();
  EXPECT_EQ(confirmation.view.epoch, first.view.epoch);
  EXPECT_TRUE(confirmation.confirmed);
  EXPECT_FALSE(planner.accepted(confirmation));
  EXPECT_FALSE(planner.complete());  // the replica has not got the variables
  planner.report("a", answer("a1", first.view.epoch, true));
  EXPECT_TRUE(planner.complete());
  EXPECT_TRUE(planner.plan().empty());
}

TEST_F(ReplicaPlannerTest, AReplicaTakesOverOnlyWithTheState) {
  const auto first = command();
  planner.report_silence("a");
  EXPECT_TRUE(planner.plan().empty());  // "b" has nothing, so that "a" is waited for
  planner.report("b", answer("b1", first.view.epoch));
  const auto next = command();
  EXPECT_EQ(next.task, "b");
  EXPECT_EQ(next.view.chain, std::vector<std::string>{"b"});
  EXPECT_GT(next.view.epoch, first.view.epoch);
}

// "a" may have acknowledged updates alone once it was known to have the view without "b".
TEST_F(ReplicaPlannerTest, AViewThatWasNotAcceptedIsTakenBack) {
  for (const bool is_accepted : {false, true}) {
    planner.report("a", answer("a1", 0));
    planner.begin("a");
    planner.report("b", answer("b1"));
    const auto both = command();
    planner.accepted(both);
    planner.report_silence("b");
    const auto alone = command();
    EXPECT_EQ(alone.view.chain, std::vector<std::string>{"a"});
    if (is_accepted) planner.accepted(alone);
    planner.report("a", answer("a2"));
    planner.report("b", answer("b1", both.view.epoch));
    const auto commands = planner.plan();
    if (is_accepted) {
      EXPECT_TRUE(commands.empty() || commands.front().view.epoch == alone.view.epoch);
      continue;
    }
    ASSERT_EQ(commands.size(), 1u);
    EXPECT_EQ(commands.front().view.chain, (std::vector<std::string>{"b", "a"}));
    EXPECT_GT(commands.front().view.epoch, alone.view.epoch);
  }
}

TEST_F(ReplicaPlannerTest, AReplacedServerGetsTheViewToo) {
  const auto first = command();
  planner.report("b", answer("b1", first.view.epoch));
  planner.report_silence("a");
  const auto next = command();
  planner.accepted(next);
  planner.accepted(command());
  EXPECT_TRUE(planner.plan().empty());
  auto paused = answer("a1", first.view.epoch);
  paused.state.front().view.make() = first.view;
  planner.report("a", paused);
  const auto joined = command();
  EXPECT_EQ(joined.view.chain, (std::vector<std::string>{"b", "a"}));
  planner.accepted(joined);
  const auto commands = planner.plan();
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[1].task, "a");
  EXPECT_EQ(commands[1].view.epoch, joined.view.epoch);
}

TEST_F(ReplicaPlannerTest, ARestartedServerIsNotTakenForTheOldOne) {
  const auto first = command();
  planner.report("b", answer("b1", first.view.epoch));
  planner.report("a", answer("a2"));
  const auto next = command();
  EXPECT_EQ(next.view.chain, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(next.since, first.view.epoch);
}

TEST_F(ReplicaPlannerTest, OneFailedQuestionIsNoLoss) {
  const auto both = command();
  planner.accepted(both);
  planner.accepted(command());
  for (int failure = 1; failure < LossEstimate::kMinPatience; ++failure) {
    EXPECT_FALSE(planner.report_failure("b"));
    EXPECT_TRUE(planner.plan().empty());
  }
  planner.report("b", answer("b1", both.view.epoch));  // the count starts over
  for (int failure = 1; failure < LossEstimate::kMinPatience; ++failure)
    EXPECT_FALSE(planner.report_failure("b"));
  EXPECT_TRUE(planner.plan().empty());
  EXPECT_TRUE(planner.report_failure("b"));
  EXPECT_EQ(command().view.chain, std::vector<std::string>{"a"});
}

// Two of three questions to "b" fail. Were it taken for lost again and again, each view would be
// replaced before "b" has got the variables.
TEST_F(ReplicaPlannerTest, AServerWhoseAnswersAreOftenLostStaysInTheView) {
  const auto fail = [&](int times) {
    bool is_lost = false;
    for (int f = 0; f < times; ++f) is_lost = planner.report_failure("b");
    return is_lost;
  };
  const auto both = command();
  planner.accepted(both);
  planner.accepted(command());
  for (int round = 0; round < 50; ++round) {
    fail(2);
    planner.report("b", answer("b1", both.view.epoch));
  }
  EXPECT_FALSE(fail(2 * LossEstimate::kMinPatience));
  EXPECT_TRUE(planner.plan().empty());
  // It is missed in the end all the same.
  EXPECT_TRUE(fail(100));
  EXPECT_EQ(command().view.chain, std::vector<std::string>{"a"});
}

// What a server has not answered before it was started again says nothing about loss.
TEST_F(ReplicaPlannerTest, AServerThatWasDownIsMissedAsSoonTheNextTime) {
  for (int life = 2; life < 50; ++life) {
    for (int failure = 1; failure < LossEstimate::kMinPatience; ++failure)
      EXPECT_FALSE(planner.report_failure("b")) << life;
    EXPECT_TRUE(planner.report_failure("b")) << life;
    planner.report("b", answer(cat("b", life)));
  }
}

// "b" answers, but "a" could not send it the variables before both were lost.
TEST_F(ReplicaPlannerTest, AServerThatHasReadItsFolderGoesOnBesideAReplicaWithoutTheState) {
  const auto both = command();
  planner.accepted(both);
  planner.accepted(command());
  planner.report("a", answer("a2", both.view.epoch));
  const auto next = command();
  EXPECT_EQ(next.task, "a");
  EXPECT_EQ(next.view.chain, kTasks);
  EXPECT_GT(next.view.epoch, both.view.epoch);
}

// "b" has the variables but cannot reach "c", though the chief can.
TEST(ReplicaChainTest, TasksBeforeABrokenLinkGoOn) {
  ReplicaPlanner planner({"a", "b", "c"}, 3);
  planner.report("a", answer("a1", 0));
  planner.report("b", answer("b1"));
  planner.report("c", answer("c1"));
  planner.begin("a");
  const auto three = planner.plan();
  ASSERT_EQ(three.size(), 1u);
  ASSERT_EQ(three.front().view.chain, (std::vector<std::string>{"a", "b", "c"}));
  planner.accepted(three.front());
  auto broken = answer("b1", three.front().view.epoch);
  broken.state.front().broken = true;
  planner.report("b", broken);
  const auto two = planner.plan();
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(two.front().view.chain, (std::vector<std::string>{"a", "b"}));
}

// "a" has gone on alone since "b" was in its view: a new chief that went on with "b" would lose
// what "a" has acknowledged.
TEST_F(ReplicaPlannerTest, ANewChiefWaitsLongerForAServerThatItDoesNotKnow) {
  ReplicaPlanner next(kTasks, 2);
  next.report("b", answer("b1", 1));
  for (int failure = 1; failure < 10 * LossEstimate::kMinPatience; ++failure)
    EXPECT_FALSE(next.report_failure("a"));
  next.report("a", answer("a1", 2));
  EXPECT_EQ(next.take_over(), std::vector<std::string>{"b"});
  const auto commands = next.plan();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands.front().task, "a");
}

// It has answered the new chief once, and is silent when that takes over.
TEST_F(ReplicaPlannerTest, ANewChiefWaitsForASilentServerWithANewerView) {
  ReplicaPlanner next(kTasks, 2);
  next.report("a", answer("a1", 2));
  next.report("b", answer("b1", 1));
  next.report_silence("a");
  EXPECT_EQ(next.take_over(), std::vector<std::string>{"b"});
  EXPECT_TRUE(next.plan().empty());
  next.report("a", answer("a1", 2));
  const auto commands = next.plan();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands.front().task, "a");
  EXPECT_EQ(commands.front().since, 2);
}

// Both were in the newest view, so that the one that is left has everything.
TEST_F(ReplicaPlannerTest, ANewChiefGoesOnWithoutASilentServerOfTheSameView) {
  ReplicaPlanner next(kTasks, 2);
  next.report("a", answer("a1", 1));
  next.report("b", answer("b1", 1));
  next.report_silence("a");
  EXPECT_EQ(next.take_over(), std::vector<std::string>{"b"});
  const auto commands = next.plan();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands.front().task, "b");
}

// It serves in a view of an earlier chief, of which the new one has not heard when it takes over.
TEST_F(ReplicaPlannerTest, AHomeThatWasSilentGoesOnInANewerView) {
  ReplicaPlanner next(kTasks, 2);
  EXPECT_EQ(next.take_over(), kTasks);
  next.begin("a");
  EXPECT_TRUE(next.plan().empty());
  next.report("a", answer("a1", 7));
  const auto commands = next.plan();
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands.front().task, "a");
  EXPECT_GT(commands.front().view.epoch, 7);
}

}  // namespace
}  // namespace tandem::distribute
