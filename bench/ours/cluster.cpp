// Our side of `./dev bench cluster`, and the client of TensorFlow's servers: a row ROW_tensorflow
// is the same graph by the same client on those. `bench_cluster scaling` has the rows of how it
// scales, since that process moves to a host of a network of its own.
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/distribute/connect.h>
#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/distribute/remote_session.h>
#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/ours/cluster/embedding.h"
#include "bench/ours/cluster/graphs.h"
#include "bench/ours/cluster/mlp_training.h"
#include "bench/ours/cluster/plain_socket.h"
#include "bench/ours/cluster/recovery.h"
#include "bench/ours/cluster/scaling.h"
#include "bench/ours/cluster/servers.h"
#include "bench/ours/cluster/side_by_side.h"

namespace td = tandem;
using bench::Answer;
using bench::Kind;
using bench::Servers;
using td::distribute::ParameterServerStrategy;
using td::distribute::RemoteSession;

namespace {

constexpr double kMegabytesPulled = 100;  // bench/peers/export_cluster.py
constexpr double kTrainSeconds = 1;
constexpr int kChain = 100;  // bench/peers/tensorflow_remote.py

// What a side keeps from one measurement to the next.
class Side {
 public:
  explicit Side(Kind kind) : kind_(kind) {}

  Answer master_step() {
    RemoteSession& session = this->session("master_step", 0, false);
    const std::vector<RemoteSession::Feed> feeds{{"x", vector_of(1.5f)}, {"y", vector_of(2.0f)}};
    Answer answer;
    answer.value = 1e6 * bench::seconds_per_call([&](std::int64_t n) {
                     for (; n > 0; --n) answer.check = first_of(session.run(feeds, {"sum"}));
                   });
    return answer;
  }

  Answer ps_step() {
    RemoteSession& session = this->session("ps_step", 0, true);
    double count = first_of(session.run({}, {"count"}));
    Answer answer;
    answer.value = 1e6 * bench::seconds_per_call([&](std::int64_t n) {
                     for (; n > 0; --n) {
                       if (first_of(session.run({}, {"count"})) != ++count)
                         throw std::runtime_error("an addition is lost or doubled");
                     }
                   });
    return answer;
  }

  Answer ps_pull() {
    RemoteSession& session = this->session("ps_pull", 0, true);
    Answer answer;
    const double seconds = bench::seconds_per_call([&](std::int64_t n) {
      for (; n > 0; --n) answer.check = first_of(session.run({}, {"sum"}));
    });
    answer.value = kMegabytesPulled / seconds;
    return answer;
  }

  // A client for each worker, side by side; each goes through half of the batches.
  Answer ps_train_by_sessions() {
    std::vector<RemoteSession*> sessions{&session("ps_train_0", 0, true),
                                         &session("ps_train_1", 1, false)};
    std::vector<double> losses(sessions.size());
    Answer answer;
    answer.value = bench::steps_per_second(
        sessions.size(), kTrainSeconds, [&](std::size_t w, std::size_t step) {
          const auto& [images, labels] = batches_[(2 * step + w) % batches_.size()];
          losses[w] = first_of(sessions[w]->run({{"x", images.array()}, {"y", labels.array()}},
                                                {"loss"}, {"train"}));
        });
    answer.loss = (losses[0] + losses[1]) / 2;
    answer.check = bench::check_of(batches_);
    return answer;
  }

  Answer ps_train() {
    if (!training_) {
      ParameterServerStrategy::Options options;
      options.cluster = servers().cluster();
      options.optimizer = {.name = "adam"};
      training_ = std::make_unique<bench::MlpTraining>(std::move(options), batches_);
    }
    Answer answer;
    answer.value = training_->steps_per_second(kTrainSeconds);
    answer.loss = training_->last_loss();
    answer.check = bench::check_of(batches_);
    return answer;
  }

  Answer embedding() {
    if (!embedding_) embedding_ = std::make_unique<bench::Embedding>();
    return embedding_->run();
  }
  Answer embedding_by_sessions() {
    if (!embedding_by_sessions_)
      embedding_by_sessions_ = std::make_unique<bench::EmbeddingBySessions>(kind_);
    return embedding_by_sessions_->run();
  }

  Answer replication() { return replicated().speed(); }
  Answer recovery_replicated() { return replicated().recovery(); }
  Answer recovery_durable() {
    if (!durable_) durable_ = std::make_unique<bench::Durable>();
    return durable_->recovery();
  }

  // A chain of eager adds on another task, the last of which is fetched.
  Answer remote_eager() {
    if (!connection_)
      connection_ = td::distribute::connect({servers().cluster(), "client", /*task=*/-1});
    const td::DeviceScope there("/job:worker/task:1");
    const td::Tensor one = td::identity(td::Tensor(1.0f));
    Answer answer;
    answer.value = 1e6 / kChain * bench::seconds_per_call([&](std::int64_t n) {
                     for (; n > 0; --n) {
                       td::Tensor sum = td::identity(td::Tensor(0.0f));
                       for (int i = 0; i < kChain; ++i) sum = sum + one;
                       answer.check = sum.item<float>();
                     }
                   });
    return answer;
  }

 private:
  static td::Array vector_of(float value) {
    return td::Tensor::from(std::vector<float>(10, value)).array();
  }
  static double first_of(const std::vector<td::Array>& values) {
    return values.at(0).data<float>()[0];
  }

  Servers& servers() {
    if (!servers_) servers_ = std::make_unique<Servers>(kind_);
    return *servers_;
  }
  bench::Replicated& replicated() {
    if (!replicated_) replicated_ = std::make_unique<bench::Replicated>(batches_);
    return *replicated_;
  }
  RemoteSession& session(const std::string& name, int worker, bool initialize) {
    std::unique_ptr<RemoteSession>& session = sessions_[name];
    if (!session) {
      session = RemoteSession::open(servers().target(worker), bench::graph(name));
      if (initialize) session->run({}, {}, {"init"});
    }
    return *session;
  }

  const Kind kind_;
  const std::vector<bench::Batch> batches_ = bench::mlp_batches();
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<bench::MlpTraining> training_;
  std::unique_ptr<bench::Embedding> embedding_;
  std::unique_ptr<bench::EmbeddingBySessions> embedding_by_sessions_;
  std::unique_ptr<bench::Replicated> replicated_;
  std::unique_ptr<bench::Durable> durable_;
  std::unique_ptr<td::distribute::Connection> connection_;
  std::map<std::string, std::unique_ptr<RemoteSession>> sessions_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool scales = argc == 2 && std::string_view(argv[1]) == "scaling";
  // First, before there are threads that would stay behind.
  std::unique_ptr<bench::Scaling> scaling;
  if (scales) scaling = std::make_unique<bench::Scaling>();
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  if (scales) return bench::serve(scaling->rows(), "tandem");
  Side ours(Kind::kTandem), tensorflow(Kind::kTensorFlow);
  bench::Rows rows;
  for (const auto& [name, run] : std::map<std::string, Answer (Side::*)()>{
           {"master_step", &Side::master_step},
           {"ps_step", &Side::ps_step},
           {"ps_pull", &Side::ps_pull},
           {"ps_train_by_sessions", &Side::ps_train_by_sessions},
           {"embedding_by_sessions", &Side::embedding_by_sessions}}) {
    rows[name] = [&ours, run = run] { return (ours.*run)(); };
    rows[name + "_tensorflow"] = [&tensorflow, run = run] { return (tensorflow.*run)(); };
  }
  rows["remote_eager"] = [&] { return ours.remote_eager(); };
  rows["ps_train"] = [&] { return ours.ps_train(); };
  rows["embedding"] = [&] { return ours.embedding(); };
  rows["replication"] = [&] { return ours.replication(); };
  rows["recovery_replicated"] = [&] { return ours.recovery_replicated(); };
  rows["recovery_durable"] = [&] { return ours.recovery_durable(); };
  rows["ps_pull_plain_socket"] = [] {
    Answer answer;
    bench::PlainSocket socket("127.0.0.1", static_cast<std::size_t>(1e6 * kMegabytesPulled));
    answer.value = kMegabytesPulled / socket.seconds_per_answer();
    return answer;
  };
  return bench::serve(rows, "tandem");
}
