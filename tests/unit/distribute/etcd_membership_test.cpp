// Against a real etcd (Debian: etcd-server), begun for the test.
#include "tandem/distribute/etcd_membership.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/parameter_server_strategy.h"
#include "tandem/distribute/server.h"
#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// An etcd of its own, on ports that were free a moment ago.
class EtcdMembershipTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/bin/etcd"))
      GTEST_SKIP() << "etcd is not installed (Debian: etcd-server)";
    std::string folder = testing::TempDir() + "etcd_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    endpoint_ = Server({}).address();  // ended again
    const std::string client = "http://" + endpoint_, peer = "http://" + Server({}).address();
    std::vector<std::string> words{"etcd",
                                   "--data-dir",
                                   folder,
                                   "--listen-client-urls",
                                   client,
                                   "--advertise-client-urls",
                                   client,
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer,
                                   "--initial-cluster",
                                   "default=" + peer,
                                   "--log-level",
                                   "fatal"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ASSERT_EQ(::posix_spawn(&etcd_, "/usr/bin/etcd", nullptr, nullptr, arguments.data(), environ),
              0);
  }
  void TearDown() override {
    if (etcd_ <= 0) return;
    ::kill(etcd_, SIGKILL);
    ::waitpid(etcd_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  EtcdMembership::Options member(const std::string& job, const std::string& address) const {
    EtcdMembership::Options options;
    options.endpoint = endpoint_;
    options.cluster_name = "test";
    options.job = job;
    options.address = address;
    options.lease = 2s;
    options.patience = 30s;
    return options;
  }

  std::string folder_, endpoint_;
  pid_t etcd_ = 0;
};

TEST_F(EtcdMembershipTest, MembersJoinAndLeave) {
  const EtcdMembership ps(member("ps", "h1:1"));
  std::optional<EtcdMembership> first(std::in_place, member("worker", "h2:1"));
  const EtcdMembership second(member("worker", "h3:1"));
  EXPECT_EQ(first->task(), 0);
  EXPECT_EQ(second.task(), 1);
  const ClusterResolver here = second.wait_for({{"ps", 1}, {"worker", 2}}, 10s);
  EXPECT_EQ(here.cluster().to_string(), "ps=h1:1;worker=h2:1,h3:1");
  EXPECT_EQ(here.job(), "worker");
  EXPECT_EQ(here.task(), 1);
  first.reset();
  EXPECT_EQ(second.members().to_string(), "ps=h1:1;worker=1:h3:1");
  const EtcdMembership third(member("worker", "h4:1"));
  EXPECT_EQ(third.task(), 0);  // the number that is free
  try {
    third.wait_for({{"worker", 3}}, 1ms);
    FAIL();
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its members are ps=h1:1;worker=h4:1,h3:1"));
  }
}

// A client asks without being a member.
TEST_F(EtcdMembershipTest, AResolverWaitsForTheMembers) {
  const EtcdMembership ps(member("ps", "h1:1"));
  std::optional<EtcdMembership> worker;
  std::thread later([&] { worker.emplace(member("worker", "h2:1")); });
  const ClusterResolver here =
      ClusterResolver::from_etcd(endpoint_, {{"ps", 1}, {"worker", 1}}, "test", 30s);
  later.join();
  EXPECT_EQ(here.cluster().to_string(), "ps=h1:1;worker=h2:1");
  EXPECT_FALSE(here.is_task());
  EXPECT_EQ(here.master(), "grpc://h2:1");
  try {
    ClusterResolver::from_etcd(endpoint_, {{"worker", 2}}, "test", 1ms);
    FAIL();
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("its members are ps=h1:1;worker=h2:1"));
  }
  // Clusters of other names are not seen.
  EXPECT_THROW(ClusterResolver::from_etcd(endpoint_, {{"ps", 1}}, "other", 1ms),
               DeadlineExceededError);
}

TEST_F(EtcdMembershipTest, OneMemberLeads) {
  std::optional<EtcdMembership> first(std::in_place, member("chief", "h1:1"));
  const EtcdMembership second(member("chief", "h2:1"));
  EXPECT_TRUE(first->try_lead());
  EXPECT_FALSE(second.try_lead());
  EXPECT_TRUE(first->try_lead());
  first.reset();
  EXPECT_TRUE(second.try_lead());
}

TEST_F(EtcdMembershipTest, ALeaseIsRenewedAndRunsOut) {
  const EtcdMembership other(member("worker", "h1:1"));
  // Renewals go on for longer than a lease: the other member stays while this one is looked at.
  for (int i = 0; i < 30; ++i) {
    EXPECT_THROW(other.wait_for({{"ps", 1}}, 100ms), DeadlineExceededError);
    ASSERT_EQ(other.members().num_tasks("worker"), 1);
  }
  EXPECT_TRUE(other.is_member());
  // Without answers it cannot know that it is one any more.
  ::kill(etcd_, SIGSTOP);
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (other.is_member() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(other.is_member());
  ::kill(etcd_, SIGCONT);
}

// With processes that tests/cluster/etcd_test.py begins: once this has said "trained" it kills the
// worker there is and begins another one.
TEST(EtcdClusterTest, AStrategyUsesMembersThatAreNew) {
  const char* const endpoint = std::getenv("TANDEM_TEST_ETCD");
  if (!endpoint) GTEST_SKIP() << "runs in tests/cluster/etcd_test.py";
  Mutex mutex;
  std::condition_variable changed;
  bool is_new = false;
  ParameterServerStrategy::Options options;
  options.cluster = ClusterResolver::from_etcd(endpoint, {{"ps", 1}, {"worker", 1}}).cluster();
  options.members = [endpoint] { return ClusterResolver::from_etcd(endpoint, {}).cluster(); };
  options.optimizer = {.name = "sgd", .learning_rate = 1.0};
  options.on_event = [&](const std::string& line) {
    const MutexLock lock(mutex);
    is_new = is_new || line == "/job:worker/replica:0/task:1 is new";
    changed.notify_all();
  };
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(
      [&w](std::span<const Tensor> in) { return std::vector{reduce_sum(w.value() * in[0])}; },
      {Tensor(1.0f)});
  const auto train = [&] {
    for (int i = 0; i < 10; ++i) strategy.schedule(step, {Tensor(1.0f)});
    strategy.join();
  };
  train();
  std::cout << "trained" << std::endl;
  {
    MutexLock lock(mutex);
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!is_new && std::chrono::steady_clock::now() < until) lock.wait_until(changed, until);
    ASSERT_TRUE(is_new);
  }
  train();
  strategy.read_variables();
  EXPECT_EQ(w.value().array().values<float>()[0], -20.0f);
}

TEST(EtcdTest, SaysThatNoneAnswers) {
  EtcdMembership::Options options;
  options.endpoint = "localhost:1";
  options.address = "h:1";
  options.patience = 1s;
  try {
    EtcdMembership member(options);
    FAIL();
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("etcd at localhost:1 does not answer"));
  }
  options.address = "h";
  EXPECT_THROW(EtcdMembership{options}, InvalidArgumentError);
  options.address = "h:1";
  options.lease = 0s;
  EXPECT_THROW(EtcdMembership{options}, InvalidArgumentError);
  options.lease = 2s;
  options.cluster_name = "a/b";
  EXPECT_THROW(EtcdMembership{options}, InvalidArgumentError);
  EXPECT_THROW(ClusterResolver::from_etcd("localhost:1", {}, ""), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::distribute
