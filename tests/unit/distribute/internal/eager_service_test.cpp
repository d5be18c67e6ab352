// Contexts of EagerService: each client's own, and ended without it.

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/distribute/internal/in_process_cluster.h"

namespace tandem::distribute {
namespace {

using testing::HasSubstr;

Status create_context(InProcessCluster::Task& task, std::uint64_t id, std::int64_t keep_alive) {
  proto::CreateContextRequest request;
  proto::EagerServerDef& server = request.server_def.make();
  server.job_name = "worker";
  server.cluster.make().job.emplace_back().name = "worker";
  server.cluster.make().job.back().tasks[0] = "a:1";
  request.context_id = static_cast<io::proto::Fixed64>(id);
  request.keep_alive_secs = keep_alive;
  return call(task, "/tensorflow.eager.EagerService/CreateContext", write_message(request)).first;
}

Status keep_alive(InProcessCluster::Task& task, std::uint64_t id) {
  proto::KeepAliveRequest request;
  request.context_id = static_cast<io::proto::Fixed64>(id);
  return call(task, "/tensorflow.eager.EagerService/KeepAlive", write_message(request)).first;
}

TEST(EagerServiceTest, ContextsEndWhenTheirClientsDoNotCall) {
  InProcessCluster cluster("worker=a:1");
  auto& task = cluster.task("worker", 0);
  EXPECT_TRUE(create_context(task, 7, 1).ok());
  EXPECT_TRUE(create_context(task, 8, 100).ok());
  EXPECT_EQ(create_context(task, 8, 100).code, Code::kInvalidArgument);
  EXPECT_EQ(task.eager_service.num_contexts(), 2u);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (task.eager_service.num_contexts() > 1 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Status expired = keep_alive(task, 7);
  EXPECT_EQ(expired.code, Code::kAborted);
  EXPECT_THAT(expired.message,
              HasSubstr("Unable to find a context_id matching the specified one (7)"));
  EXPECT_TRUE(keep_alive(task, 8).ok());
}

// A client that names the task otherwise would look for its devices under names that are not there.
TEST(EagerServiceTest, AContextOfAnotherTaskIsRefused) {
  InProcessCluster cluster("ps=a:1");
  EXPECT_EQ(create_context(cluster.task("ps", 0), 7, 1).code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::distribute
