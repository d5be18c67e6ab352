#include "tandem/distribute/cluster_spec.h"

#include <string>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

TEST(ClusterSpecTest, ReadsWhatItWrites) {
  const auto cluster = ClusterSpec::parse("ps=h1:2222, h2:2222;worker=h3:2222,[::1]:2,unix:/tmp/s");
  EXPECT_EQ(cluster.num_tasks("ps"), 2);
  EXPECT_EQ(cluster.address("ps", 1), "h2:2222");
  EXPECT_EQ(cluster.address("worker", 1), "[::1]:2");
  EXPECT_EQ(cluster.address("worker", 2), "unix:/tmp/s");
  EXPECT_EQ(ClusterSpec::parse(cluster.to_string()), cluster);
}

TEST(ClusterSpecTest, RefusesWhatIsNoCluster) {
  for (const char* text :
       {"", ";", "worker", "=h:1", "worker=", "worker=h", "worker=h:", "worker=:1", "worker=h:x",
        "worker=h:70000", "worker=h:999999999999", "1w=h:1", "a b=h:1", "w=h:1;w=h:2"}) {
    EXPECT_THROW(ClusterSpec::parse(text), InvalidArgumentError) << text;
  }
}

TEST(ClusterSpecTest, NamesTheTasksWhereOneIsMissing) {
  const auto cluster = ClusterSpec::parse("worker=h:1");
  try {
    cluster.address("ps", 0);
    FAIL() << "there is no ps";
  } catch (const NotFoundError& error) {
    EXPECT_NE(std::string(error.what()).find("worker=h:1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(cluster.address("worker", 1), NotFoundError);
}

}  // namespace
}  // namespace tandem::distribute
