#include "bench/ours/cluster/recovery.h"

#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "bench/common/timing.h"

namespace bench {
namespace {

namespace td = tandem;
using td::distribute::ParameterServerStrategy;

constexpr double kSeconds = 1;
constexpr std::int64_t kRows = 1'000'000, kColumns = 250;  // 1 GB

ParameterServerStrategy::Options adam(const Servers& servers, int replicas) {
  ParameterServerStrategy::Options options;
  options.cluster = servers.cluster();
  options.optimizer = {.name = "adam"};
  options.replicas = replicas;
  return options;
}

}  // namespace

Replicated::Replicated(const std::vector<Batch>& batches)
    : training_(adam(servers_, 2), batches), plain_(adam(plain_servers_, 1), batches) {}

Answer Replicated::speed() {
  Answer answer;
  const double before = plain_.steps_per_second(kSeconds / 2);
  const double replicated = training_.steps_per_second(kSeconds);
  const double after = plain_.steps_per_second(kSeconds / 2);
  answer.value = replicated / ((before + after) / 2);
  answer.loss = training_.last_loss();
  return answer;
}

Answer Replicated::recovery() {
  if (!training_.strategy().wait_until_replicated(std::chrono::seconds(60)))
    throw std::runtime_error("the variables are not replicated");
  training_.step();
  const double start = now();
  servers_.kill_ps(0);
  training_.step();
  Answer answer;
  answer.value = 1e3 * (now() - start);
  servers_.restart_ps(0);
  return answer;
}

Durable::Durable()
    : folder_(std::filesystem::temp_directory_path() /
              ("bench_cluster-" + std::to_string(::getpid()))) {
  servers_ = std::make_unique<Servers>(
      Kind::kTandem, Servers::Options{.workers = 1, .ps_options = {"--durable", folder_.string()}});
  ParameterServerStrategy::Options options;
  options.cluster = servers_->cluster();
  options.optimizer = {.name = "sgd", .learning_rate = 1};
  strategy_ = std::make_unique<ParameterServerStrategy>(std::move(options));
  const td::Tensor ids = td::Tensor::from(std::vector<std::int32_t>{0, 1, kRows - 1});
  {
    const td::Variable table(td::zeros({kRows, kColumns}), {.name = "table"});
    strategy_->add_variables({table});
    step_ = strategy_->train_function(
        [table](std::span<const td::Tensor> batch) {
          return std::vector{td::reduce_sum(td::gather(table, batch[0]))};
        },
        {ids});
  }
}

Durable::~Durable() {
  strategy_.reset();
  servers_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Answer Durable::recovery() {
  const td::Tensor ids = td::Tensor::from(std::vector<std::int32_t>{0, 1, kRows - 1});
  const auto step = [&] {
    const auto loss = strategy_->schedule(step_, {ids});
    strategy_->join();
    // Each step takes 1 from each of these.
    const double expected = -3.0 * kColumns * steps_++;
    if (strategy_->fetch(loss)[0].item<float>() != static_cast<float>(expected))
      throw std::runtime_error("an update is lost or doubled");
  };
  step();
  const double start = now();
  servers_->kill_ps(0);
  servers_->restart_ps(0);
  step();
  Answer answer;
  answer.value = 1e3 * (now() - start);
  return answer;
}

}  // namespace bench
