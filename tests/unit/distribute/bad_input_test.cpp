// What makes no sense is refused with a typed error that says what to do, before anything is sent.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/cluster_status.h"
#include "tandem/distribute/connect.h"
#include "tandem/distribute/parameter_server_strategy.h"
#include "tandem/distribute/remote_session.h"
#include "tandem/distribute/server.h"
#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

using testing::HasSubstr;

// Null, as std::getenv gives it for a variable that is not set.
const char* nothing() { return std::getenv("TANDEM_TEST_VARIABLE_THAT_IS_NOT_SET"); }

struct Case {
  const char* what;
  std::function<void()> call;
  const char* says;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    try {
      c.call();
      ADD_FAILURE() << c.what << " is taken";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(c.says)) << c.what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.what << ": " << error.what();
    }
  }
}

TEST(DistributeBadInputTest, NullText) {
  ClusterSpec cluster = ClusterSpec::parse("worker=localhost:1");
  const char* null = "null was given";
  expect_refused({
      {"parse", [] { ClusterSpec::parse(nothing()); }, null},
      {"num_tasks", [&] { static_cast<void>(cluster.num_tasks(nothing())); }, null},
      {"address", [&] { static_cast<void>(cluster.address(nothing(), 0)); }, null},
      {"set_address, job", [&] { cluster.set_address(nothing(), 0, "h:1"); }, null},
      {"set_address, address", [&] { cluster.set_address("ps", 0, nothing()); }, null},
      {"resolver", [&] { ClusterResolver(cluster, nothing(), -1); }, null},
      {"TF_CONFIG", [] { ClusterResolver::from_tf_config(nothing()); }, null},
      {"file", [] { ClusterResolver::from_file(nothing()); }, null},
      {"hosts", [] { ClusterResolver::expand_hosts(nothing()); }, null},
      {"sizes", [] { ClusterResolver::parse_job_sizes(nothing()); }, null},
      {"session, target", [] { RemoteSession::open(nothing(), ""); }, null},
      {"session, graph", [] { RemoteSession::open("grpc://localhost:1", nothing()); }, null},
      {"status", [] { cluster_status(nothing()); }, null},
      {"server", [] { Server({.job = nothing()}); }, null},
      {"certificate", [] { Server({.security = {.certificate = nothing()}}); }, null},
  });
}

TEST(DistributeBadInputTest, ServersAndConnections) {
  const ClusterSpec cluster = ClusterSpec::parse("worker=localhost:1");
  const auto client = [](const ClusterSpec& of) { return ClusterResolver(of, "client", -1); };
  expect_refused({
      {"job", [] { Server({.job = "a b"}); }, "'a b' is no name of a job"},
      {"empty job", [] { Server({.job = ""}); }, "'' is no name of a job"},
      {"task", [] { Server({.task = -1}); }, "task must be at least 0, but is -1"},
      {"wrong job", [&] { Server({.cluster = cluster, .job = "ps"}); }, "no task 0 of job 'ps'"},
      {"port", [] { Server({.port = 70000}); }, "no port 70000"},
      {"metrics", [] { Server({.metrics_port = -2}); }, "metrics_port must be at least -1"},
      {"replicas", [] { Server({.replicas = 0}); }, "replicas must be at least 1, but is 0"},
      {"threads", [] { Server({.inter_op_threads = -1}); }, "inter_op_threads"},
      {"heartbeat", [] { Server({.heartbeat_timeout = std::chrono::milliseconds(0)}); },
       "heartbeat_timeout"},
      {"half of TLS", [] { Server({.security = {.certificate = "c.pem"}}); }, "all three files"},
      {"negative task", [] { ClusterSpec().set_address("ps", -2, "h:1"); }, "a task -2"},
      {"empty cluster", [&] { static_cast<void>(connect(client({}))); }, "has no tasks"},
      {"timeout", [&] { connect(client(cluster), {.timeout = std::chrono::milliseconds(0)}); },
       "timeout of a connection must be positive"},
      {"keep_alive", [&] { connect(client(cluster), {.keep_alive = std::chrono::seconds(-1)}); },
       "keep_alive"},
      {"target", [] { RemoteSession::open("", ""); }, "needs a target"},
      {"scheme", [] { RemoteSession::open("grpc://", ""); }, "needs a target"},
  });
}

TEST(DistributeBadInputTest, Strategies) {
  const ClusterSpec cluster = ClusterSpec::parse("ps=localhost:1;worker=localhost:2");
  using Options = ParameterServerStrategy::Options;
  const auto with = [&](const std::function<void(Options&)>& change) {
    return [&cluster, change] {
      Options options;
      options.cluster = cluster;
      change(options);
      ParameterServerStrategy{options};
    };
  };
  ParameterServerStrategy strategy({.cluster = cluster});
  const auto step = [](std::span<const Tensor> inputs) { return std::vector{inputs[0]}; };
  const auto known = strategy.function(step, {Tensor(1.0f)});
  expect_refused({
      {"no cluster", [] { ParameterServerStrategy(Options{}); }, "no tasks of job 'worker'"},
      {"job", with([](Options& o) { o.server_job = "server"; }), "no tasks of job 'server'"},
      {"one job", with([](Options& o) { o.server_job = "worker"; }), "different tasks"},
      {"replicas", with([](Options& o) { o.replicas = 0; }), "replicas must be at least 1"},
      {"aggregate", with([](Options& o) { o.replicas_to_aggregate = -1; }), "at least 0"},
      {"staleness", with([](Options& o) { o.max_staleness = -1; }), "max_staleness"},
      {"heartbeat", with([](Options& o) { o.heartbeat_timeout = std::chrono::milliseconds(-1); }),
       "heartbeat_timeout"},
      {"shards", with([](Options& o) { o.partitioner = Partitioner::fixed_shards(0); }),
       "partitioner"},
      {"NaN", with([](Options& o) { o.optimizer.learning_rate = NAN; }), "learning_rate"},
      {"negative", with([](Options& o) { o.optimizer.epsilon = -1; }), "epsilon"},
      {"empty step", [&] { static_cast<void>(strategy.function(nullptr, {})); }, "empty function"},
      {"undefined example", [&] { static_cast<void>(strategy.function(step, {Tensor()})); },
       "Example 0"},
      {"no function", [&] { strategy.schedule(nullptr, {}); }, "given no function"},
      {"inputs", [&] { strategy.schedule(known, {}); }, "takes 1 inputs, not 0"},
      {"dtype", [&] { strategy.schedule(known, {Tensor(1)}); }, "Input 0 of the function is float"},
      {"undefined input", [&] { strategy.schedule(known, {Tensor()}); }, "undefined tensor"},
      {"nothing to fetch", [&] { strategy.fetch(nullptr); }, "nothing that was scheduled"},
  });
}

}  // namespace
}  // namespace tandem::distribute
