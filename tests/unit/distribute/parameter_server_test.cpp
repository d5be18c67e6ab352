#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/cluster_status.h"
#include "tandem/distribute/parameter_server_strategy.h"
#include "tandem/distribute/server.h"
#include "tandem/tandem.h"

#include "tests/unit/folder.h"

namespace tandem::distribute {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Servers of this process: their addresses are known once they listen.
class Cluster {
 public:
  Cluster(int servers, int workers, std::string durable = {}, int replicas = 1)
      : durable_(std::move(durable)), replicas_(replicas) {
    if (replicas > 1) {  // replicas have to know each other's addresses
      std::vector<std::unique_ptr<Server>> held;
      for (int t = 0; t < servers; ++t) {
        held.push_back(std::make_unique<Server>(Server::Options{}));
        spec_.set_address("ps", t, held.back()->address());
      }
    }
    for (int t = 0; t < servers; ++t) start("ps", t);
    for (int t = 0; t < workers; ++t) start("worker", t);
  }
  void start(const std::string& job, int task) {
    Server::Options options;
    options.cluster = spec_;
    if (!knows(job, task)) options.cluster.set_address(job, task, "localhost:0");
    options.job = job;
    options.task = task;
    options.inter_op_threads = 1;
    options.intra_op_threads = 1;
    if (job == "ps") {
      options.durable = durable_;
      options.replicas = replicas_;
    }
    auto server = std::make_unique<Server>(options);
    spec_.set_address(job, task, server->address());
    tasks_[{job, task}] = std::move(server);
  }
  void stop(const std::string& job, int task) { tasks_.erase({job, task}); }
  const ClusterSpec& spec() const { return spec_; }

 private:
  bool knows(const std::string& job, int task) const {
    const auto found = spec_.jobs().find(job);
    return found != spec_.jobs().end() && found->second.contains(task);
  }
  const std::string durable_;
  const int replicas_;
  ClusterSpec spec_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> tasks_;
};

ParameterServerStrategy::Options sgd(const Cluster& cluster, double rate = 1.0) {
  ParameterServerStrategy::Options options;
  options.cluster = cluster.spec();
  options.optimizer = {.name = "sgd", .learning_rate = rate};
  return options;
}

// The gradient of each element is x.
ParameterServerStrategy::Body sum_of(const Variable& w) {
  return [w](std::span<const Tensor> in) { return std::vector{reduce_sum(w.value() * in[0])}; };
}

TEST(ParameterServerTest, EachClosureIsOneUpdate) {
  Cluster cluster(1, 2);
  ParameterServerStrategy strategy(sgd(cluster));
  const Variable w(zeros({3}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  std::vector<ParameterServerStrategy::RemoteValue> losses;
  for (int i = 0; i < 50; ++i) losses.push_back(strategy.schedule(step, {Tensor(1.0f)}));
  strategy.join();
  EXPECT_TRUE(strategy.done());
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 50);
  for (const float value : w.value().array().values<float>()) EXPECT_EQ(value, -50.0f);
  EXPECT_LE(strategy.fetch(losses.back())[0].item<float>(), 0.0f);
}

TEST(ParameterServerTest, RowsAreSharedByServers) {
  Cluster cluster(2, 1);
  auto options = sgd(cluster);
  options.partitioner = Partitioner::fixed_shards(2);
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({5, 2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {ones({5, 2})});
  strategy.schedule(step, {reshape(range(0.0f, 10.0f, 1.0f), {5, 2})});
  strategy.join();
  strategy.read_variables();
  const auto values = w.value();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(values.array().values<float>()[static_cast<std::size_t>(i)], static_cast<float>(-i));
}

TEST(ParameterServerTest, PartitionersCountAsTensorFlows) {
  EXPECT_EQ(Partitioner::whole().num_shards(10, 4000), 1);
  EXPECT_EQ(Partitioner::fixed_shards(4).num_shards(3, 12), 3);
  EXPECT_EQ(Partitioner::min_size(1000, 8).num_shards(100, 4000), 4);
  EXPECT_EQ(Partitioner::min_size(1000, 2).num_shards(100, 4000), 2);
  EXPECT_EQ(Partitioner::max_size(1000).num_shards(100, 4001), 5);
}

// A table goes to one server, all that is small to the other one.
TEST(ParameterServerTest, BySizeVariablesAreOnTheServerWithTheFewestBytes) {
  Cluster cluster(2, 1);
  auto options = sgd(cluster);
  options.placement = ShardPlacement::kBySize;
  ParameterServerStrategy strategy(options);
  std::vector<Variable> variables{Variable(zeros({1000, 4}), {.name = "table"})};
  for (const char* name : {"a", "b", "c"})
    variables.emplace_back(zeros({4}), VariableOptions{.name = name});
  strategy.add_variables(variables);
  const std::vector<TaskStatus> tasks = cluster_status("grpc://" + cluster.spec().address("ps", 1));
  const auto parameters = [&](const std::string& task) {
    std::string json;
    for (const TaskStatus& status : tasks) {
      if (status.task == task) json = status.json;
    }
    const std::size_t begin = json.find("\"parameters\":");
    return begin == std::string::npos ? json : json.substr(begin, json.find('}', begin) - begin);
  };
  EXPECT_THAT(parameters("/job:ps/replica:0/task:0"),
              AllOf(HasSubstr("\"bytes\":16000"), HasSubstr("\"count\":1")));
  EXPECT_THAT(parameters("/job:ps/replica:0/task:1"),
              AllOf(HasSubstr("\"bytes\":48"), HasSubstr("\"count\":3")));
  const auto step = strategy.train_function(
      [&](std::span<const Tensor> in) {
        Tensor sum = reduce_sum(variables[0].value());
        for (std::size_t v = 1; v < variables.size(); ++v)
          sum = sum + reduce_sum(variables[v].value());
        return std::vector{sum * in[0]};
      },
      {Tensor(1.0f)});
  strategy.schedule(step, {Tensor(2.0f)});
  strategy.join();
  strategy.read_variables();
  for (const Variable& variable : variables) {
    for (const float value : variable.value().array().values<float>())
      ASSERT_EQ(value, -2.0f) << variable.name();
  }
}

TEST(ParameterServerTest, SynchronousUpdatesAreMeans) {
  Cluster cluster(1, 2);
  auto options = sgd(cluster);
  options.replicas_to_aggregate = 2;
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  for (const float x : {1.0f, 3.0f, 5.0f, 7.0f, 8.0f}) strategy.schedule(step, {Tensor(x)});
  strategy.join();  // the last one has no partner, and is an update by itself
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 3);
  EXPECT_EQ(w.value().array().values<float>()[0], -(2.0f + 6.0f + 8.0f));
}

TEST(ParameterServerTest, AServerWithoutAFolderSaysThatItsStateIsGone) {
  Cluster cluster(1, 1);
  ParameterServerStrategy strategy(sgd(cluster));
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  strategy.schedule(step, {Tensor(1.0f)});
  strategy.join();
  cluster.stop("ps", 0);
  cluster.start("ps", 0);
  strategy.schedule(step, {Tensor(1.0f)});
  try {
    strategy.join();
    FAIL() << "join has not thrown";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:ps/replica:0/task:0 was started again"));
  }
}

TEST(ParameterServerTest, AServerWithAFolderGoesOn) {
  const Folder folder;
  Cluster cluster(1, 1, folder.file("state"));
  ParameterServerStrategy strategy(sgd(cluster));
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  for (int i = 0; i < 10; ++i) strategy.schedule(step, {Tensor(1.0f)});
  strategy.join();
  cluster.stop("ps", 0);
  for (int i = 0; i < 10; ++i) strategy.schedule(step, {Tensor(1.0f)});
  cluster.start("ps", 0);
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 20);
  EXPECT_EQ(w.value().array().values<float>()[1], -20.0f);

  // The next chief finds them there.
  ParameterServerStrategy next(sgd(cluster));
  next.add_variables({w});
  EXPECT_EQ(next.num_updates(), 20);
}

// An embedding of 100,000 rows on two servers, of which steps look up a few, some twice, against
// training in one process.
void expect_rows_trained_as_here(const ServerOptimizer& optimizer,
                                 const keras::optimizers::Optimizer& here) {
  Cluster cluster(2, 1);
  auto options = sgd(cluster);
  options.optimizer = optimizer;
  options.partitioner = Partitioner::fixed_shards(2);
  ParameterServerStrategy strategy(options);
  const Variable table(random::stateless_uniform({100'000, 16}, {1, 2}), {.name = "table"});
  const Variable w(ones({16}), {.name = "w"});
  const Variable table_here(table.value(), {.name = "table"}), w_here(w.value(), {.name = "w"});
  const auto body = [](const Variable& rows, const Variable& weights) {
    return [rows, weights](std::span<const Tensor> in) {
      return std::vector{reduce_mean(square(gather(rows, in[0]) * weights.value()))};
    };
  };
  strategy.add_variables({table, w});
  const Tensor example = zeros({4, 2}, int32);
  const auto step = strategy.train_function(body(table, w), {example});
  for (int i = 0; i < 5; ++i) {
    const Tensor ids = reshape(
        Tensor(std::vector<std::int32_t>{i, 99'999, 50'000, i, 49'999, 7, 7, 1000 * i}), {4, 2});
    strategy.schedule(step, {ids});
    strategy.join();
    GradientTape tape;
    const Tensor loss = body(table_here, w_here)(std::vector{ids})[0];
    const auto gradients = tape.gradient(loss, {table_here, w_here});
    here.apply_gradients({{gradients[0], table_here}, {gradients[1], w_here}});
  }
  strategy.read_variables();
  EXPECT_LT(reduce_max(abs(table.value() - table_here.value())).item<float>(), 1e-6f);
  EXPECT_LT(reduce_max(abs(w.value() - w_here.value())).item<float>(), 1e-6f);
  EXPECT_GT(reduce_max(abs(w.value() - 1.0f)).item<float>(), 1e-4f);
}

TEST(ParameterServerTest, LookedUpRowsAreTrainedAsInOneProcess) {
  expect_rows_trained_as_here({.name = "sgd", .learning_rate = 0.5},
                              keras::optimizers::SGD({.learning_rate = 0.5}));
  expect_rows_trained_as_here({.name = "adagrad", .learning_rate = 0.1},
                              keras::optimizers::Adagrad({.learning_rate = 0.1}));
  expect_rows_trained_as_here({.name = "adam", .learning_rate = 0.01},
                              keras::optimizers::Adam({.learning_rate = 0.01}));
}

TEST(ParameterServerTest, FitTrainsAModelAsKerasDoesInOneProcess) {
  Cluster cluster(1, 2);
  const Tensor x = random::stateless_uniform({70, 4}, {3, 4});
  const Tensor y = reduce_sum(x, {1}, true) * 0.5f;
  const keras::Sequential model{keras::Input({4}), keras::Dense(8, {.activation = "relu"}),
                                keras::Dense(1)};
  const keras::Sequential here{keras::Input({4}), keras::Dense(8, {.activation = "relu"}),
                               keras::Dense(1)};
  for (std::size_t v = 0; v < here.trainable_weights().size(); ++v)
    here.trainable_weights()[v].assign(model.trainable_weights()[v].value());
  const auto batches = data::from_tensor_slices({x, y}).batch(16);  // the last one has 6

  auto options = sgd(cluster);
  options.optimizer = {.name = "adam", .learning_rate = 0.01};
  options.replicas_to_aggregate = 1;  // in the batches' order
  ParameterServerStrategy strategy(options);
  int epochs = 0;
  const keras::History trained =
      strategy.fit(model, batches,
                   {.epochs = 4,
                    .loss = keras::losses::MeanSquaredError(),
                    .metrics = {keras::metrics::MeanAbsoluteError()},
                    .validation_data = batches,
                    .on_epoch_end = [&](int, const keras::Logs&) { ++epochs; }});
  EXPECT_EQ(epochs, 4);
  EXPECT_EQ(strategy.num_updates(), 20);
  EXPECT_LT(trained["loss"].back(), trained["loss"].front());
  EXPECT_TRUE(trained.contains("val_mean_absolute_error"));

  here.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.01}), .loss = "mse"});
  const auto history = here.fit(batches, {.epochs = 4, .verbose = keras::Verbose::kSilent});
  EXPECT_NEAR(trained["loss"].back(), history["loss"].back(), 0.05 * history["loss"].back());
}

keras::Sequential model_with_state(int seed) {
  return keras::Sequential{
      keras::Input({4}),
      keras::Dense(8, {.activation = "relu",
                       .kernel_initializer = keras::initializers::GlorotUniform(seed)}),
      keras::BatchNormalization({.momentum = 0.8}), keras::Dropout(0.25, {.seed = seed}),
      keras::Dense(1, {.kernel_initializer = keras::initializers::GlorotUniform(seed)})};
}

TEST(ParameterServerTest, MovingStatisticsAndSeedsAreTrainedAsInOneProcess) {
  Cluster cluster(2, 2);
  const Tensor x = random::stateless_uniform({64, 4}, {3, 4});
  const Tensor y = reduce_sum(x, {1}, true) * 0.5f;
  const auto batches = data::from_tensor_slices({x, y}).batch(16);
  const keras::Sequential model = model_with_state(7), here = model_with_state(7);

  auto options = sgd(cluster, 0.1);
  options.replicas_to_aggregate = 1;  // in the batches' order
  options.partitioner = Partitioner::fixed_shards(2);
  ParameterServerStrategy strategy(options);
  const keras::History trained = strategy.fit(
      model, batches,
      {.epochs = 3, .loss = keras::losses::MeanSquaredError(), .validation_data = batches});

  here.compile({.optimizer = keras::optimizers::SGD({.learning_rate = 0.1}), .loss = "mse"});
  const auto history = here.fit(
      batches, {.epochs = 3, .verbose = keras::Verbose::kSilent, .validation_data = batches});
  const std::vector<Variable> there = model.variables(), local = here.variables();
  ASSERT_EQ(there.size(), local.size());
  for (std::size_t v = 0; v < there.size(); ++v) {
    const Tensor difference = cast(there[v].value(), float64) - cast(local[v].value(), float64);
    EXPECT_LT(reduce_max(abs(difference)).item<double>(), 1e-5) << local[v].name();
  }
  EXPECT_NEAR(trained["val_loss"].back(), history["val_loss"].back(), 1e-5);
}

// A step that counts itself in an int64 and a float, and notes its input.
struct CountingStep {
  Variable w{zeros({3}), {.name = "w"}};
  Variable count{zeros({2}, int64), {.trainable = false, .name = "count"}};
  Variable sum{zeros({}), {.trainable = false, .name = "sum"}};
  Variable last{zeros({}), {.trainable = false, .name = "last"}};

  std::vector<Variable> state() const { return {count, sum, last}; }
  ParameterServerStrategy::Body body() const {
    return [this](std::span<const Tensor> in) {
      count.assign_add(ones({2}, int64));
      sum.assign(sum.value() + in[0]);
      last.assign(in[0]);
      return std::vector{reduce_sum(w.value() * last.value())};
    };
  }
  void expect(std::int64_t closures, float total) const {
    for (const std::int64_t value : count.value().array().values<std::int64_t>())
      EXPECT_EQ(value, closures);
    EXPECT_EQ(sum.value().item<float>(), total);
    EXPECT_EQ(last.value().item<float>(), 1.0f);
  }
};

TEST(ParameterServerTest, StateIsChangedOnceForEachClosureWhateverIsLost) {
  const Folder folder;
  Cluster cluster(1, 2, folder.file("state"));
  auto options = sgd(cluster);
  options.on_event = {};
  ParameterServerStrategy strategy(options);
  const CountingStep counting;
  strategy.add_variables({counting.w}, counting.state());
  const auto step = strategy.train_function(counting.body(), {Tensor(1.0f)});
  const auto train = [&](int steps) {
    for (int i = 0; i < steps; ++i) strategy.schedule(step, {Tensor(1.0f)});
  };
  train(30);
  cluster.stop("worker", 1);
  train(10);
  cluster.stop("ps", 0);
  train(10);
  cluster.start("ps", 0);
  strategy.join();
  strategy.read_variables();
  counting.expect(50, 50.0f);
}

TEST(ParameterServerTest, OneUpdateHasTheMeanOfFloatsAndTheSumOfCounters) {
  Cluster cluster(1, 2);
  auto options = sgd(cluster);
  options.replicas_to_aggregate = 2;
  ParameterServerStrategy strategy(options);
  const CountingStep counting;
  strategy.add_variables({counting.w}, counting.state());
  const auto step = strategy.train_function(counting.body(), {Tensor(1.0f)});
  for (const float x : {2.0f, 4.0f, 3.0f, 1.0f}) strategy.schedule(step, {Tensor(x)});
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 2);
  counting.expect(4, 3.0f + 2.0f);
}

TEST(ParameterServerTest, StaleGradientsAreComputedAgain) {
  Cluster cluster(1, 2);
  auto options = sgd(cluster);
  options.max_staleness = 1;
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({3}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  for (int i = 0; i < 50; ++i) strategy.schedule(step, {Tensor(1.0f)});
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 50);
  EXPECT_EQ(w.value().array().values<float>()[0], -50.0f);
}

TEST(ParameterServerTest, BackupWorkersAreNotWaitedFor) {
  Cluster cluster(1, 3);
  auto options = sgd(cluster);
  options.replicas_to_aggregate = 2;
  options.drop_stale = true;
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  for (int i = 0; i < 60; ++i) strategy.schedule(step, {Tensor(1.0f)});
  strategy.join();
  strategy.read_variables();
  // Each update is the mean of ones; what came too late is in none.
  EXPECT_LE(strategy.num_updates(), 31);
  EXPECT_GE(strategy.num_updates(), 10);
  EXPECT_EQ(w.value().array().values<float>()[0], -static_cast<float>(strategy.num_updates()));
}

TEST(ParameterServerTest, AReplicaGoesOnWithoutAnyUpdateLost) {
  Cluster cluster(2, 2, {}, 2);
  auto options = sgd(cluster);
  options.partitioner = Partitioner::fixed_shards(2);
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({4}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  int scheduled = 0;
  const auto train = [&](int steps) {
    for (int i = 0; i < steps; ++i, ++scheduled) strategy.schedule(step, {Tensor(1.0f)});
  };
  // Each server is lost and comes back, in turns: nothing of the first ones is left then.
  for (int round = 0; round < 2; ++round) {
    for (const int lost : {0, 1}) {
      train(20);
      cluster.stop("ps", lost);
      train(20);
      strategy.join();
      cluster.start("ps", lost);
      EXPECT_TRUE(strategy.wait_until_replicated(std::chrono::seconds(30)));
    }
  }
  train(5);
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), scheduled);
  for (const float value : w.value().array().values<float>())
    EXPECT_EQ(value, static_cast<float>(-scheduled));
}

TEST(ParameterServerTest, ANewChiefGoesOnWithReplicas) {
  Cluster cluster(2, 1, {}, 2);
  const Variable w(zeros({2}), {.name = "w"});
  const auto train = [&](ParameterServerStrategy& strategy) {
    const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
    for (int i = 0; i < 10; ++i) strategy.schedule(step, {Tensor(1.0f)});
    strategy.join();
    strategy.read_variables();
  };
  {
    ParameterServerStrategy strategy(sgd(cluster));
    strategy.add_variables({w});
    train(strategy);
  }
  cluster.stop("ps", 0);
  auto options = sgd(cluster);
  options.heartbeat_timeout = std::chrono::seconds(2);
  ParameterServerStrategy next(options);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    cluster.start("ps", 0);
  });
  next.add_variables({w});
  later.join();
  EXPECT_EQ(next.num_updates(), 10);
  train(next);
  EXPECT_EQ(w.value().array().values<float>()[1], -20.0f);
}

// The only worker there was is gone, so that the new one has to run what is left. The server, with
// its folder, moves to another port: chief and worker have to find it there.
TEST(ParameterServerTest, NewMembersAreUsedAndTasksThatMoveAreFound) {
  const Folder folder;
  Mutex mutex;
  ClusterSpec now;
  const auto members = [&] {
    const MutexLock lock(mutex);
    return now;
  };
  const auto start = [&](const std::string& job, int task) {
    Server::Options options;
    options.cluster = members();
    options.cluster.set_address(job, task, "localhost:0");
    options.members = members;
    options.job = job;
    options.task = task;
    options.inter_op_threads = options.intra_op_threads = 1;
    if (job == "ps") options.durable = folder.file("state");
    auto server = std::make_unique<Server>(options);
    const MutexLock lock(mutex);
    now.set_address(job, task, server->address());
    return server;
  };
  auto ps = start("ps", 0);
  auto first = start("worker", 0);
  ParameterServerStrategy::Options options;
  options.cluster = members();
  options.members = members;
  options.optimizer = {.name = "sgd", .learning_rate = 1.0};
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  const auto train = [&](int steps) {
    for (int i = 0; i < steps; ++i) strategy.schedule(step, {Tensor(1.0f)});
  };
  train(10);
  strategy.join();
  first.reset();
  train(10);
  const auto second = start("worker", 1);
  strategy.join();
  ps.reset();
  train(10);
  ps = start("ps", 0);
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 30);
  EXPECT_EQ(w.value().array().values<float>()[0], -30.0f);
  for (const TaskStatus& task : cluster_status(second->target())) {
    if (task.task != second->task()) continue;
    EXPECT_THAT(task.json, HasSubstr(ps->address()));
  }
}

TEST(ParameterServerTest, AWorkerThatIsLostIsReplaced) {
  Cluster cluster(1, 2);
  auto options = sgd(cluster);
  std::vector<std::string> events;
  Mutex mutex;
  options.on_event = [&](const std::string& line) {
    const MutexLock lock(mutex);
    events.push_back(line);
  };
  ParameterServerStrategy strategy(options);
  const Variable w(zeros({2}), {.name = "w"});
  strategy.add_variables({w});
  const auto step = strategy.train_function(sum_of(w), {Tensor(1.0f)});
  for (int i = 0; i < 40; ++i) {
    strategy.schedule(step, {Tensor(1.0f)});
    if (i == 20) cluster.stop("worker", 1);
  }
  strategy.join();
  strategy.read_variables();
  EXPECT_EQ(strategy.num_updates(), 40);
  EXPECT_EQ(w.value().array().values<float>()[0], -40.0f);
}

}  // namespace
}  // namespace tandem::distribute
