#include "bench/ours/cluster/scaling.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/distribute/remote_session.h>

#include "bench/common/timing.h"
#include "bench/ours/cluster/graphs.h"
#include "bench/ours/cluster/plain_socket.h"
#include "bench/ours/cluster/side_by_side.h"

namespace bench {
namespace {

namespace td = tandem;
using td::distribute::ParameterServerStrategy;
using td::distribute::RemoteSession;

constexpr int kMaxWorkers = 8;
constexpr double kSeconds = 0.5;
// So many that the end, when the last steps are waited for, hardly counts.
constexpr std::size_t kStepsAtATime = 64;  // of a worker

// With the calling thread on its host 0, or null and why not.
std::unique_ptr<const ShapedNetwork> make_network(std::string& why_not) {
  constexpr int kOthers = 2;  // the client and the parameter server
  try {
    auto network = std::make_unique<const ShapedNetwork>(
        ShapedNetwork::Options{.hosts = kMaxWorkers + kOthers});
    network->enter(0);
    return network;
  } catch (const std::runtime_error& error) {
    why_not = error.what();
    return nullptr;
  }
}

double first_of(const std::vector<td::Array>& values) { return values.at(0).data<float>()[0]; }

}  // namespace

// The servers of a place, and what runs on them.
class Scaling::Cluster {
 public:
  Cluster(const Place& place, const ShapedNetwork* network, const std::vector<Batch>& batches)
      : place_(place),
        batches_(batches),
        servers_(place.kind, {.workers = place.workers, .network = network}) {}

  const Place& place() const { return place_; }

  // The additions of all clients are counted by one variable.
  Answer ps_step() {
    if (counting_.empty()) counting_ = sessions("ps_step");
    const double before = count_;
    std::vector<double> counts(counting_.size(), before), made(counting_.size());
    Answer answer;
    answer.value = steps_per_second(counting_.size(), kSeconds, [&](std::size_t w, std::size_t) {
      const double count = first_of(counting_[w]->run({}, {"count"}));
      if (count <= counts[w]) throw std::runtime_error("a count was seen twice");
      counts[w] = count;
      ++made[w];
    });
    count_ = *std::max_element(counts.begin(), counts.end());
    double steps = 0;
    for (const double of_worker : made) steps += of_worker;
    if (count_ - before != steps) throw std::runtime_error("an addition is lost or doubled");
    return answer;
  }

  Answer ps_train() {
    if (!training_) {
      ParameterServerStrategy::Options options;
      options.cluster = servers_.cluster();
      options.optimizer = {.name = "adam"};
      training_ = std::make_unique<MlpTraining>(std::move(options), batches_);
    }
    Answer answer;
    answer.value = training_->steps_per_second(
        kSeconds, kStepsAtATime * static_cast<std::size_t>(place_.workers));
    answer.loss = training_->last_loss();
    answer.check = check_of(batches_);
    return answer;
  }

  Answer ps_train_by_sessions() {
    if (replicas_.empty()) replicas_ = sessions("ps_train");
    std::vector<double> losses(replicas_.size());
    Answer answer;
    answer.value =
        steps_per_second(replicas_.size(), kSeconds, [&](std::size_t w, std::size_t step) {
          const auto& [images, labels] = batches_[(step * replicas_.size() + w) % batches_.size()];
          losses[w] = first_of(replicas_[w]->run({{"x", images.array()}, {"y", labels.array()}},
                                                 {"loss"}, {"train"}));
        });
    answer.loss = losses[0];
    answer.check = check_of(batches_);
    return answer;
  }

 private:
  using Sessions = std::vector<std::unique_ptr<RemoteSession>>;

  // One for each worker, which is its master; their variables are shared.
  Sessions sessions(const std::string& name) {
    Sessions sessions;
    for (int w = 0; w < place_.workers; ++w) {
      const bool by_worker = name == "ps_train";
      sessions.push_back(RemoteSession::open(
          servers_.target(w), graph(by_worker ? name + "_" + std::to_string(w) : name)));
    }
    sessions[0]->run({}, {}, {"init"});
    return sessions;
  }

  const Place place_;
  const std::vector<Batch>& batches_;
  Servers servers_;
  Sessions counting_, replicas_;
  double count_ = 0;
  std::unique_ptr<MlpTraining> training_;
};

Scaling::Scaling() : network_(make_network(why_not_)) {}
Scaling::~Scaling() = default;

const ShapedNetwork& Scaling::network() const {
  if (!network_) throw Skipped("there is no network to be had between namespaces: " + why_not_);
  return *network_;
}

Scaling::Cluster& Scaling::cluster(const Place& place) {
  if (!cluster_ || cluster_->place() != place) {
    cluster_.reset();
    cluster_ = std::make_unique<Cluster>(place, place.shaped ? &network() : nullptr, batches_);
  }
  return *cluster_;
}

Answer Scaling::round_trip() const {
  const int kServer = 1;
  network().enter(kServer);
  PlainSocket socket(ShapedNetwork::address(kServer), 1);
  network().enter(0);
  Answer answer;
  answer.value = 1e3 * socket.seconds_per_answer();
  return answer;
}

Rows Scaling::rows() {
  Rows rows;
  rows["scaling_round_trip"] = [this] { return round_trip(); };
  for (const bool shaped : {true, false}) {
    for (const int workers : {1, 2, 4, kMaxWorkers}) {
      const auto name = [&](const char* work) {
        return std::string("scaling_") + (shaped ? "" : "loopback_") + work + "_" +
               std::to_string(workers);
      };
      const Place ours{Kind::kTandem, shaped, workers};
      const Place theirs{Kind::kTensorFlow, shaped, workers};
      rows[name("ps_step")] = [this, ours] { return cluster(ours).ps_step(); };
      rows[name("ps_train")] = [this, ours] { return cluster(ours).ps_train(); };
      rows[name("ps_train_by_sessions")] = [this, ours] {
        return cluster(ours).ps_train_by_sessions();
      };
      rows[name("ps_step") + "_tensorflow"] = [this, theirs] { return cluster(theirs).ps_step(); };
      rows[name("ps_train") + "_tensorflow"] = [this, theirs] {
        return cluster(theirs).ps_train_by_sessions();
      };
    }
  }
  return rows;
}

}  // namespace bench
