#include "tandem/distribute/connect.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/server.h"
#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two workers in this process or, where the environment names them, servers of TensorFlow's.
class ConnectTest : public testing::Test {
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

std::string worker(int task) { return cat("/job:worker/task:", task); }

TEST_F(ConnectTest, OpsRunWhereTheScopeSays) {
  EXPECT_THAT(connection_->devices(), ElementsAre("/job:worker/replica:0/task:0/device:CPU:0",
                                                  "/job:worker/replica:0/task:1/device:CPU:0"));
  Tensor x({1.0f, 2.0f}), y, z;
  {
    const DeviceScope there(worker(0));
    y = x * 3.0f + x;
  }
  EXPECT_EQ(y.device(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(y.shape(), (Shape{2}));
  {
    const DeviceScope there(worker(1));
    z = y + 1.0f;  // from task to task
  }
  EXPECT_EQ(z.device(), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_THAT((z * 2.0f).array().values<float>(), ElementsAre(10, 18));  // here
  EXPECT_THAT(y.array().values<float>(), ElementsAre(4, 8));
}

TEST_F(ConnectTest, SizesThatOnlyTheTaskKnows) {
  const DeviceScope there(worker(1));
  const Tensor found = where(Tensor({0.0f, 1.0f, 2.0f}) > Tensor(0.5f));
  EXPECT_EQ(found.shape(), (Shape{2, 1}));
  EXPECT_THAT(found.array().values<std::int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(strings::upper(tensor<std::string>({"ab", ""})).array().values<std::string>(),
              ElementsAre("AB", ""));
}

TEST_F(ConnectTest, VariablesStayThere) {
  std::unique_ptr<Variable> v;
  {
    const DeviceScope there(worker(1));
    v = std::make_unique<Variable>(Tensor({1.0f, 2.0f}));
  }
  EXPECT_EQ(v->device(), "/job:worker/replica:0/task:1/device:CPU:0");
  v->assign_add(Tensor({1.0f, 1.0f}));
  EXPECT_THAT(v->read_value().array().values<float>(), ElementsAre(2, 3));
  GradientTape tape;
  const Tensor loss = reduce_sum(*v * *v);
  const Tensor gradient = tape.gradient(loss, *v);
  EXPECT_THAT(gradient.array().values<float>(), ElementsAre(4, 6));
}

TEST_F(ConnectTest, FunctionsRunThereAndUseTheirVariables) {
  std::unique_ptr<Variable> v;
  {
    const DeviceScope there(worker(0));
    v = std::make_unique<Variable>(Tensor({1.0f, 2.0f}));
  }
  auto step = function([&](const Tensor& x) {
    v->assign_add(x);
    return *v * 10.0f;
  });
  for (int task = 0; task < 2; ++task) {  // beside the variable, and in another task
    const DeviceScope there(worker(task));
    const float grown = static_cast<float>(task + 1);
    EXPECT_THAT(step(Tensor({1.0f, 1.0f})).array().values<float>(),
                ElementsAre(10 * (1 + grown), 10 * (2 + grown)));
  }
  EXPECT_THAT(v->read_value().array().values<float>(), ElementsAre(3, 4));
}

TEST_F(ConnectTest, FailuresComeWithTheValue) {
  const DeviceScope there(worker(0));
  const Tensor inverse = linalg::inv(zeros({2, 2}));  // returns
  try {
    static_cast<void>(inverse.array());
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not invertible"));
  }
  EXPECT_THAT((Tensor({1.0f}) + 1.0f).array().values<float>(), ElementsAre(2));
  connection_->synchronize();
}

TEST_F(ConnectTest, AChainOfCallsDoesNotWaitForEach) {
  const DeviceScope there(worker(1));
  Tensor sum(0.0f);
  for (int i = 0; i < 1000; ++i) sum = sum + 1.0f;
  EXPECT_EQ(sum.item<float>(), 1000);
}

TEST_F(ConnectTest, ThereIsOneConnectionAtATimeAndItEnds) {
  Tensor left;
  {
    const DeviceScope there(worker(0));
    left = Tensor({1.0f}) + 1.0f;
  }
  EXPECT_THROW(static_cast<void>(
                   connect(ClusterResolver(ClusterSpec::parse("w=localhost:1"), "client", -1))),
               FailedPreconditionError);
  connection_.reset();
  EXPECT_THROW(static_cast<void>(left.array()), Error);
  EXPECT_THROW(static_cast<void>(DeviceScope(worker(0)), Tensor({1.0f}) + 1.0f), Error);
}

}  // namespace
}  // namespace tandem::distribute
