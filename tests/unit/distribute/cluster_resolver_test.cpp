#include "tandem/distribute/cluster_resolver.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

ClusterResolver::Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(ClusterResolverTest, TfConfig) {
  const auto here = ClusterResolver::from_environment(
      environment({{"TF_CONFIG",
                    R"({"cluster": {"ps": ["h1:1"], "worker": ["h2:1", "h3:1"], "chief": ["h0:1"]},
            "task": {"type": "worker", "index": 1}, "environment": "cloud"})"}}));
  EXPECT_EQ(here.job(), "worker");
  EXPECT_EQ(here.task(), 1);
  EXPECT_EQ(here.cluster().to_string(), "chief=h0:1;ps=h1:1;worker=h2:1,h3:1");
  EXPECT_EQ(here.master(), "grpc://h0:1");
}

TEST(ClusterResolverTest, TfConfigOfAnEvaluatorAndOfAClient) {
  // Kubeflow's evaluator is no part of the cluster.
  const auto evaluator = ClusterResolver::from_tf_config(
      R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "evaluator", "index": 0}})");
  EXPECT_FALSE(evaluator.is_task());
  EXPECT_FALSE(ClusterResolver::from_tf_config(R"({"cluster": {"worker": ["h:1"]}})").is_task());
}

TEST(ClusterResolverTest, MalformedTfConfig) {
  for (const char* json :
       {"", "[]", "{", "{}", R"({"cluster": []})", R"({"cluster": {"worker": 1}})",
        R"({"cluster": {"worker": [1]}})", R"({"cluster": {"worker": ["h"]}})",
        R"({"cluster": {"worker": ["h:1"]}, "task": {}})",
        R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": -1}})",
        R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": "x"}})"}) {
    EXPECT_THROW(ClusterResolver::from_tf_config(json), InvalidArgumentError) << json;
  }
  EXPECT_THROW(ClusterResolver::from_tf_config(
                   R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": 3}})"),
               NotFoundError);
}

TEST(ClusterResolverTest, SlurmHosts) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(ClusterResolver::expand_hosts("n[1-3,7],login"),
            (Hosts{"n1", "n2", "n3", "n7", "login"}));
  EXPECT_EQ(ClusterResolver::expand_hosts("gpu[08-11]x"),
            (Hosts{"gpu08x", "gpu09x", "gpu10x", "gpu11x"}));
  EXPECT_EQ(ClusterResolver::expand_hosts("a"), (Hosts{"a"}));
  EXPECT_THROW(ClusterResolver::expand_hosts("n[1-"), InvalidArgumentError);
  EXPECT_THROW(ClusterResolver::expand_hosts("n[3-1]"), InvalidArgumentError);
  EXPECT_THROW(ClusterResolver::expand_hosts("n[0-999999999]"), InvalidArgumentError);
}

TEST(ClusterResolverTest, SlurmGivesRanksToJobsInOrder) {
  const auto slurm = environment({{"SLURM_PROCID", "2"},
                                  {"SLURM_STEP_NODELIST", "n[1-2]"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "2,1"}});
  const auto here = ClusterResolver::from_slurm(slurm, {{"ps", 1}, {"worker", 2}});
  EXPECT_EQ(here.cluster().to_string(), "ps=n1:8888;worker=n1:8889,n2:8888");
  EXPECT_EQ(here.job(), "worker");
  EXPECT_EQ(here.task(), 1);
  EXPECT_EQ(ClusterResolver::from_environment(slurm).cluster().num_tasks("worker"), 3);
  EXPECT_THROW(ClusterResolver::from_slurm(slurm, {{"worker", 2}}), InvalidArgumentError);
}

TEST(ClusterResolverTest, Mpi) {
  const auto here =
      ClusterResolver::from_environment(environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                                     {"OMPI_COMM_WORLD_SIZE", "2"},
                                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(here.cluster().to_string(), "worker=localhost:8888,localhost:8889");
  EXPECT_EQ(here.task(), 1);
  const auto far = environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}});
  EXPECT_THROW(ClusterResolver::from_mpi(far), InvalidArgumentError);
  const auto named = environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"TANDEM_HOSTS", "a,b"}});
  EXPECT_EQ(ClusterResolver::from_mpi(named).cluster().to_string(), "worker=a:8888,b:8888");
  const auto at = [](const char* port) {
    return ClusterResolver::from_mpi(
               environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"TANDEM_PORT", port}}))
        .cluster()
        .to_string();
  };
  EXPECT_EQ(at("2222"), "worker=localhost:2222,localhost:2223");
  EXPECT_THROW(at("70000"), InvalidArgumentError);
}

TEST(ClusterResolverTest, KubernetesStatefulSets) {
  const auto here =
      ClusterResolver::from_environment(environment({{"TANDEM_CLUSTER_JOBS", "ps=1;worker=2"},
                                                     {"HOSTNAME", "digits-worker-1"},
                                                     {"TANDEM_SERVICE", "digits"}}));
  EXPECT_EQ(here.job(), "worker");
  EXPECT_EQ(here.task(), 1);
  EXPECT_EQ(here.cluster().address("ps", 0), "digits-ps-0.digits:2222");
  const auto client = ClusterResolver::from_kubernetes(
      environment({{"TANDEM_CLUSTER_JOBS", "worker=2"}, {"HOSTNAME", "notebook"}}));
  EXPECT_FALSE(client.is_task());
  EXPECT_EQ(client.master(), "grpc://worker-0.worker:2222");
}

TEST(ClusterResolverTest, SaysWhatToSetWhereNothingIs) {
  EXPECT_THROW(ClusterResolver::from_environment(environment({})), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::distribute
