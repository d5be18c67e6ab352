#include "bench/ours/cluster/embedding.h"

#include <string>

#include "bench/common/samples.h"
#include "bench/common/timing.h"
#include "bench/ours/cluster/graphs.h"
#include "bench/ours/cluster/side_by_side.h"

namespace bench {
namespace {

namespace td = tandem;
using td::distribute::ParameterServerStrategy;

constexpr double kSeconds = 1;
// As in bench/peers/export_cluster.py.
constexpr std::int64_t kRows = 1'000'000, kColumns = 64, kLookedUp = 1'000;
constexpr double kRate = 0.001;
constexpr float kInitial = 0.5f;
constexpr int kBatches = 64;
constexpr std::uint64_t kRowSeed = 11;

std::vector<td::Tensor> make_ids() {
  std::vector<td::Tensor> batches;
  for (int b = 0; b < kBatches; ++b) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < kLookedUp; ++i) {
      const auto place = static_cast<std::uint64_t>(b * kLookedUp + i);
      ids.push_back(static_cast<std::int32_t>(mixed(place, kRowSeed) % kRows));
    }
    batches.push_back(td::Tensor::from(ids));
  }
  return batches;
}

// Both sides have looked up the same rows.
double check_of(const std::vector<td::Tensor>& batches) {
  double sum = 0;
  for (const td::Tensor& ids : batches) {
    for (const std::int32_t id : ids.array().values<std::int32_t>()) sum += id;
  }
  return sum;
}

ParameterServerStrategy::Options options_of(const Servers& servers) {
  ParameterServerStrategy::Options options;
  options.cluster = servers.cluster();
  options.optimizer = {.name = "sgd", .learning_rate = kRate};
  options.partitioner = td::distribute::Partitioner::fixed_shards(2);
  return options;
}

}  // namespace

Embedding::Embedding() : ids_(make_ids()), strategy_(options_of(servers_)) {
  const td::Variable table(td::fill({kRows, kColumns}, td::Tensor(kInitial)), {.name = "table"});
  strategy_.add_variables({table});
  step_ = strategy_.train_function(
      [table](std::span<const td::Tensor> batch) {
        return std::vector{td::reduce_sum(td::square(td::gather(table, batch[0])))};
      },
      {ids_[0]});
}

Embedding::~Embedding() = default;

Answer Embedding::run() {
  const double start = now();
  double steps = 0;
  ParameterServerStrategy::RemoteValue last;
  while (now() - start < kSeconds) {
    for (const td::Tensor& ids : ids_) last = strategy_.schedule(step_, {ids});
    strategy_.join();
    steps += kBatches;
  }
  Answer answer;
  answer.value = steps / (now() - start);
  answer.loss = strategy_.fetch(last)[0].item<float>();
  answer.check = check_of(ids_);
  return answer;
}

EmbeddingBySessions::EmbeddingBySessions(Kind kind) : servers_(kind, {.ps = 2}), ids_(make_ids()) {
  for (int w = 0; w < 2; ++w) {
    const std::string name = "embedding_" + std::to_string(w);
    sessions_.push_back(td::distribute::RemoteSession::open(servers_.target(w), graph(name)));
    if (w == 0) sessions_[0]->run({}, {}, {"init"});
  }
}

Answer EmbeddingBySessions::run() {
  std::vector<double> losses(sessions_.size());
  Answer answer;
  answer.value = steps_per_second(sessions_.size(), kSeconds, [&](std::size_t w, std::size_t step) {
    const td::Tensor& ids = ids_[(2 * step + w) % ids_.size()];
    losses[w] = sessions_[w]->run({{"ids", ids.array()}}, {"loss"}, {"train"})[0].data<float>()[0];
  });
  answer.loss = (losses[0] + losses[1]) / 2;
  answer.check = check_of(ids_);
  return answer;
}

}  // namespace bench
