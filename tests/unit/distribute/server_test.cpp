#include "tandem/distribute/server.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/cluster_status.h"
#include "tandem/distribute/remote_session.h"
#include "tandem/io/graph_export.h"
#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

using testing::HasSubstr;

// y = x + 1, as a GraphDef.
std::string add_one() {
  auto f = function([](const Tensor& x) { return x + 1.0f; });
  return io::export_graph_def(f.concrete(Tensor(1.0f)), {.inputs = {"x"}, .outputs = {"y"}}).bytes;
}

Server::Options local(int threads = 1) {
  Server::Options options;
  options.job = "worker";
  options.inter_op_threads = threads;
  options.intra_op_threads = 1;
  return options;
}

TEST(ServerTest, ASessionRunsInIt) {
  Server server(local());
  EXPECT_THAT(server.description(), HasSubstr(" as /job:worker/replica:0/task:0"));
  const auto session = RemoteSession::open(server.target(), add_one());
  for (int i = 0; i < 5; ++i) {
    const auto results = session->run({{"x", Array::scalar(static_cast<float>(i))}}, {"y"});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].values<float>()[0], static_cast<float>(i + 1));
  }
  EXPECT_THROW(session->run({}, {"zz"}), NotFoundError);
  EXPECT_THROW(session->run({}, {"y"}), InvalidArgumentError);
  EXPECT_THROW(session->run({}, {}), InvalidArgumentError);
}

TEST(ServerTest, ManySessionsAtOnceInOneThreadOfTheRuntime) {
  Server server(local());
  const std::string graph = add_one();
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      const auto session = RemoteSession::open(server.target(), graph);
      for (int i = 0; i < 20; ++i) {
        const auto results = session->run({{"x", Array::scalar(static_cast<float>(c))}}, {"y:0"});
        if (results[0].values<float>()[0] == static_cast<float>(c + 1)) ++right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 160);
}

TEST(ServerTest, StatusNamesTheTaskAndItsSessions) {
  Server server(local());
  const auto session = RemoteSession::open(server.target(), add_one());
  const std::vector<TaskStatus> tasks = cluster_status(server.target());
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].task, "/job:worker/replica:0/task:0");
  ASSERT_EQ(tasks[0].devices.size(), server.runtime().devices().size());
  EXPECT_NE(tasks[0].devices[0].incarnation, 0u);
  EXPECT_THAT(tasks[0].json, HasSubstr("master_sessions"));
}

TEST(ServerTest, IsNotServedInTheClearBeyondThisMachine) {
  Server::Options options = local();
  options.cluster = ClusterSpec::parse("worker=192.0.2.1:0");
  EXPECT_THROW(Server{options}, PermissionDeniedError);
}

TEST(ServerTest, TheClusterHasToHaveTheTask) {
  Server::Options options = local();
  options.cluster = ClusterSpec::parse("ps=localhost:0");
  EXPECT_THROW(Server{options}, InvalidArgumentError);
}

TEST(ServerTest, APortIsServedByOneServer) {
  Server first(local());
  Server::Options options = local();
  options.cluster.set_address("worker", 0, first.address());
  EXPECT_THROW(Server{options}, UnavailableError);
}

TEST(ServerTest, ASessionOfAServerThatHasGoneSaysSo) {
  auto server = std::make_unique<Server>(local());
  const auto session = RemoteSession::open(server->target(), add_one());
  server.reset();
  EXPECT_THROW(session->run({{"x", Array::scalar(1.0f)}}, {"y"}), UnavailableError);
}

}  // namespace
}  // namespace tandem::distribute
