#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/connect.h"
#include "tandem/distribute/server.h"

namespace tandem::distribute {

// Two workers in this process or, where the environment names them, servers of TensorFlow's.
class TwoWorkers : public testing::Test {
 protected:
  void SetUp() override {
    ClusterSpec cluster;
    if (const char* given = std::getenv("TANDEM_TEST_CLUSTER")) {
      cluster = ClusterSpec::parse(given);
    } else {
      for (int task = 0; task < 2; ++task) {
        Server::Options options;
        options.job = "worker";
        options.task = task;
        options.cluster.set_address("worker", task, "localhost:0");
        options.inter_op_threads = 2;
        options.intra_op_threads = 1;
        servers_.push_back(std::make_unique<Server>(options));
        cluster.set_address("worker", task, servers_.back()->address());
      }
    }
    connection_ = connect(ClusterResolver(cluster, "client", -1));
  }
  void TearDown() override { connection_.reset(); }

  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Connection> connection_;
};

inline std::string worker(int task) { return cat("/job:worker/task:", task); }

}  // namespace tandem::distribute
