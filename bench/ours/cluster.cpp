// Our side of `./dev bench cluster`, and the client of TensorFlow's servers: a row ROW_tensorflow
// is the same graph by the same client on those.
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tandem/distribute/connect.h>
#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/distribute/remote_session.h>
#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/ours/cluster/plain_socket.h"
#include "bench/ours/cluster/servers.h"

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

std::string graph(const std::string& name) {
  const char* folder = std::getenv("TANDEM_BENCH_MODELS");
  std::ifstream file(std::string(folder ? folder : ".") + "/" + name + ".pb", std::ios::binary);
  if (!file) throw std::runtime_error("there is no graph " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

  // A client for each worker, side by side.
  Answer ps_train_by_sessions() {
    std::vector<RemoteSession*> sessions{&session("ps_train_0", 0, true),
                                         &session("ps_train_1", 1, false)};
    std::vector<double> steps(2), losses(2);
    std::vector<std::exception_ptr> errors(2);
    const double start = bench::now();
    std::vector<std::thread> clients;
    for (std::size_t w = 0; w < 2; ++w) {
      clients.emplace_back([&, w] {
        try {
          double sum = 0;
          for (; bench::now() - start < kTrainSeconds; ++steps[w]) {
            const auto& [images, labels] = batches_[next_batch(w, steps[w])];
            sum += first_of(sessions[w]->run({{"x", images.array()}, {"y", labels.array()}},
                                             {"loss"}, {"train"}));
          }
          losses[w] = sum / steps[w];
        } catch (...) {
          errors[w] = std::current_exception();
        }
      });
    }
    for (std::thread& client : clients) client.join();
    for (const auto& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    Answer answer;
    answer.value = (steps[0] + steps[1]) / (bench::now() - start);
    answer.loss = (losses[0] + losses[1]) / 2;
    answer.check = data_check();
    return answer;
  }

  Answer ps_train() {
    if (!training_) training_ = std::make_unique<Training>(servers().cluster(), batches_[0]);
    const double start = bench::now();
    double steps = 0, sum = 0;
    while (bench::now() - start < kTrainSeconds) {
      std::vector<ParameterServerStrategy::RemoteValue> losses;
      for (const auto& [images, labels] : batches_)
        losses.push_back(training_->strategy.schedule(training_->step, {images, labels}));
      training_->strategy.join();
      steps += static_cast<double>(losses.size());
      sum = training_->strategy.fetch(losses.back())[0].item<float>();
    }
    Answer answer;
    answer.value = steps / (bench::now() - start);
    answer.loss = sum;
    answer.check = data_check();
    return answer;
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
  struct Batch {
    td::Tensor images, labels;
  };
  struct Training {
    Training(const td::distribute::ClusterSpec& cluster, const Batch& example)
        : strategy({.cluster = cluster, .optimizer = {.name = "adam"}}) {
      strategy.add_variables(model.trainable_weights());
      step = strategy.train_function(
          [this](std::span<const td::Tensor> batch) {
            return std::vector<td::Tensor>{loss(batch[1], model(batch[0], {.training = true}))};
          },
          {example.images, example.labels});
    }
    const td::keras::Sequential model{td::keras::Input({bench::kPixels}),
                                      td::keras::Dense(bench::kMlpHidden, {.activation = "relu"}),
                                      td::keras::Dense(bench::kClasses)};
    const td::keras::losses::SparseCategoricalCrossentropy loss{{.from_logits = true}};
    ParameterServerStrategy strategy;
    std::shared_ptr<const ParameterServerStrategy::Function> step;
  };

  static td::Array vector_of(float value) {
    return td::Tensor::from(std::vector<float>(10, value)).array();
  }
  static double first_of(const std::vector<td::Array>& values) {
    return values.at(0).data<float>()[0];
  }
  // Each client goes through half of the batches.
  std::size_t next_batch(std::size_t worker, double step) const {
    return (2 * static_cast<std::size_t>(step) + worker) % batches_.size();
  }
  static std::vector<Batch> make_batches() {
    const bench::Samples made = bench::samples(bench::kMlpSamples);
    std::vector<Batch> batches;
    for (std::int64_t at = 0; at < bench::kMlpSamples; at += bench::kMlpBatch) {
      const auto* image = made.images.data() + at * bench::kPixels;
      const auto* label = made.labels.data() + at;
      batches.push_back(
          {td::Tensor::from(std::vector<float>(image, image + bench::kMlpBatch * bench::kPixels),
                            {bench::kMlpBatch, bench::kPixels}),
           td::Tensor::from(std::vector<std::int32_t>(label, label + bench::kMlpBatch))});
    }
    return batches;
  }
  double data_check() const {
    double sum = 0;
    for (const Batch& batch : batches_) sum += batch.images.array().data<float>()[0];
    return sum;
  }

  Servers& servers() {
    if (!servers_) servers_ = std::make_unique<Servers>(kind_);
    return *servers_;
  }
  RemoteSession& session(const std::string& name, int worker, bool initialize) {
    std::unique_ptr<RemoteSession>& session = sessions_[name];
    if (!session) {
      session = RemoteSession::open(servers().target(worker), graph(name));
      if (initialize) session->run({}, {}, {"init"});
    }
    return *session;
  }

  const Kind kind_;
  const std::vector<Batch> batches_ = make_batches();
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<Training> training_;
  std::unique_ptr<td::distribute::Connection> connection_;
  std::map<std::string, std::unique_ptr<RemoteSession>> sessions_;
};

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  Side ours(Kind::kTandem), tensorflow(Kind::kTensorFlow);
  bench::Rows rows;
  for (const auto& [name, run] : std::map<std::string, Answer (Side::*)()>{
           {"master_step", &Side::master_step},
           {"ps_step", &Side::ps_step},
           {"ps_pull", &Side::ps_pull},
           {"ps_train_by_sessions", &Side::ps_train_by_sessions}}) {
    rows[name] = [&ours, run = run] { return (ours.*run)(); };
    rows[name + "_tensorflow"] = [&tensorflow, run = run] { return (tensorflow.*run)(); };
  }
  rows["remote_eager"] = [&] { return ours.remote_eager(); };
  rows["ps_train"] = [&] { return ours.ps_train(); };
  rows["ps_pull_plain_socket"] = [] {
    Answer answer;
    answer.value = bench::plain_socket_megabytes_per_second(kMegabytesPulled);
    return answer;
  };
  return bench::serve(rows, "tandem");
}
