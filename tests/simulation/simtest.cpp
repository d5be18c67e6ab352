// Parameter servers under a simulated network and clock:
//   simtest --seeds N [--start S] [--report FILE] [--trace messages] [--loss SHARE]
//   simtest --seed S ...
//
// With --loss each seed has that share of messages lost, and above 0.4, the highest that seeds
// choose, as much more time as calls then need to get through.
//
// A seed decides delays, lost and repeated messages, their order, partitions of the network, when
// logs reach the disk, and when servers, workers and the chief are killed, paused and started
// again. Servers are the real ParameterServer with its real log, on a file system in memory (what a
// killed one had not written is lost), and its real replication; the chief's part of that is the
// real ReplicaPlanner. Workers are simulated: they pull, compute, push, and repeat what is not
// answered, as ClosureService does, by the real ParameterClient. Everything happens on one thread,
// so that a seed replays exactly.
//
// Servers with logs are killed at any time, all at once too. Those that have only replicas are
// killed while nothing else is wrong and every variable is on two servers: two failures at a time
// are more than two replicas promise to survive.
//
// States move to logs and replicas, and from and to chief and workers, in parts of a few elements:
// updates come, and servers are killed, while they do.
//
// What has to hold in the end: no closure hangs, each was applied exactly once on each server, by
// its gradient and by what it adds to counters, the number of updates is what the servers say, and
// replicas are equal.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/parameter_client.h"
#include "tandem/distribute/internal/client/parameter_pull.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

#include "tests/simulation/cluster.h"

using namespace tandem;
using namespace tandem::distribute;
using namespace tandem::simulation;

namespace {

constexpr double kTooLong = 2'000;  // seconds of the simulated clock
constexpr double kMaxLoss = 0.4;    // that seeds choose

// How long closures may take: a call gets through where neither request nor answer is lost.
double too_long(double loss) {
  const auto passes = [](double lost) { return (1 - lost) * (1 - lost); };
  return kTooLong * std::max(1.0, passes(kMaxLoss) / passes(loss));
}

struct Settings {
  Settings(Clock& clock, std::optional<double> given_loss)
      : workers(1 + clock.number(3)), closures(10 + clock.number(30)) {
    replicas = clock.chance(0.6) ? 2 : 1;
    durable = replicas == 1 || clock.chance(0.3);
    servers = replicas == 1 ? 1 + clock.number(2) : 2 + clock.number(2);
    to_aggregate = clock.chance(0.5) ? 0 : workers;
    max_staleness = to_aggregate == 0 && clock.chance(0.3) ? 1 + clock.number(3) : 0;
    loss = clock.chance(0.3) ? 0 : std::min(0.2 * clock.seconds(0.5), kMaxLoss);
    if (given_loss) loss = *given_loss;
    counters = 1 + clock.number(60);
    momentum = to_aggregate == 0 && clock.chance(0.5);
    // Mostly so small that nothing goes in one message.
    if (clock.chance(0.8)) sizes.max_part_bytes = static_cast<std::size_t>(32 + clock.number(200));
    sizes.max_log_bytes = clock.chance(0.5) ? 1'000 : 100'000;
  }
  int workers, closures, servers, replicas, to_aggregate, counters;
  std::int64_t max_staleness;
  bool durable;
  bool momentum;
  double loss;
  StateSizes sizes;
};

class Simulation {
 public:
  /// With `messages` the trace has what happens to each message, too. `loss` replaces the seed's.
  Simulation(std::uint64_t seed, bool messages, std::optional<double> loss)
      : clock_(seed),
        network_(clock_, messages ? [this](const std::string& line) { note(line); }
                                  : std::function<void(const std::string&)>()),
        settings_(clock_, loss),
        cluster_(clock_, network_,
                 {settings_.servers, settings_.replicas, settings_.durable,
                  cat("ram://simulation/", seed), settings_.sizes}) {
    note(cat(settings_.servers, " servers, ", settings_.replicas, " replicas, ",
             settings_.durable ? "durable, " : "", settings_.workers, " workers, ",
             settings_.closures, " closures, ", settings_.to_aggregate, " in an update, staleness ",
             settings_.max_staleness, ", loss ", settings_.loss,
             settings_.momentum ? ", momentum" : "", ", messages of ",
             settings_.sizes.max_part_bytes, " bytes"));
    for (const std::string& home : homes()) state_ids_.push_back(create(home));
    cluster_.watch();
    network_.set_loss(settings_.loss);
    // Behind them are those that begin where the others wait for each other, as Coordinator's do.
    workers_.resize(static_cast<std::size_t>(settings_.workers + kSpareWorkers));
    for (int w = 0; w < settings_.workers + kSpareWorkers; ++w) {
      for (const std::string& home : homes())
        worker(w).clients.push_back(client(cat("worker ", w), home));
    }
    for (int k = 0; k < settings_.closures; ++k) waiting_.insert(k);
    for (int w = 0; w < settings_.workers; ++w) work(w);
    const int faults = clock_.number(8);
    for (int i = 0; i < faults; ++i) clock_.after(clock_.seconds(3), [this] { fault(); });
    if (settings_.to_aggregate > 0) {
      flush();
      watch_progress();
    }
  }

  /// Empty if all is well, else what is wrong.
  std::string run() {
    while (finished_.size() < static_cast<std::size_t>(settings_.closures) && failure_.empty()) {
      if (!clock_.step(too_long(settings_.loss)))
        return cat("closures hang: ", settings_.closures - static_cast<int>(finished_.size()));
    }
    if (!failure_.empty()) return failure_;
    return check_all();
  }
  std::string trace() const { return trace_; }

 private:
  struct Worker {
    int life = 0;
    bool alive = true;
    int closure = -1;
    int round = 0;         // answers to earlier ones are not looked at
    std::size_t open = 0;  // servers that have not answered
    std::vector<PulledParameters> pulled;
    std::vector<std::shared_ptr<ParameterClient>> clients;  // by home
    std::shared_ptr<Cancellation> calls = std::make_shared<Cancellation>();
  };

  const std::vector<std::string>& homes() const { return cluster_.tasks(); }
  Worker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  void note(const std::string& line) { trace_ += cat(clock_.now(), ": ", line, "\n"); }

  std::shared_ptr<ParameterClient> client(const std::string& from, const std::string& home) {
    std::vector<ParameterClient::Replica> replicas;
    for (const std::string& task : cluster_.candidates(home))
      replicas.push_back({task, network_.channel(from, task)});
    return std::make_shared<ParameterClient>(std::move(replicas), [this] {
      return ParameterClient::Time(std::chrono::duration_cast<ParameterClient::Time::duration>(
          std::chrono::duration<double>(clock_.now())));
    });
  }

  std::string create(const std::string& home) {
    proto::CreateParametersRequest message;
    message.home = home;
    message.optimizer.make().name = settings_.momentum ? "momentum" : "sgd";
    message.optimizer.make().learning_rate = 1;
    message.optimizer.make().momentum = 0.5;
    message.replicas_to_aggregate = settings_.to_aggregate;
    message.max_staleness = settings_.max_staleness;
    Parameters variables;
    variables["w"].value = Array::zeros(DType::kFloat, Shape{settings_.closures});
    variables["count"].value = Array::zeros(DType::kInt64, Shape{settings_.counters});
    return cluster_.create(message, variables, {"count"});
  }

  // One thing that goes wrong.
  void fault() {
    if (calm_) return;
    const std::string task = homes()[static_cast<std::size_t>(clock_.number(settings_.servers))];
    const double kind = clock_.number(100) / 100.0;
    if (kind < 0.4) return kill_server(task);
    if (kind < 0.6) return kill_worker(clock_.number(settings_.workers));
    if (kind < 0.75) return pause_server(task);
    if (kind < 0.9) return cut(task);
    if (settings_.replicas > 1 && cluster_.complete() && down_.empty()) {
      note("the chief is replaced");
      cluster_.replace_chief();
    }
  }

  void kill_server(const std::string& task) {
    // One failure at a time, where nothing but replicas keeps the variables.
    const bool alone = !settings_.durable && !(cluster_.complete() && down_.empty());
    if (alone || !cluster_.is_up(task)) return;
    note(cat(task, " is killed"));
    cluster_.kill(task);
    down_.insert(task);
    clock_.after(clock_.seconds(1), [this, task] {
      cluster_.restart(task);
      down_.erase(down_.find(task));
      note(cat(task, " is started again"));
    });
  }

  void pause_server(const std::string& task) {
    if (!cluster_.is_up(task) || !down_.empty()) return;
    note(cat(task, " is paused"));
    network_.pause(task);
    down_.insert(task);
    clock_.after(clock_.seconds(4), [this, task] {
      if (cluster_.is_up(task)) network_.resume(task);
      down_.erase(down_.find(task));
      note(cat(task, " goes on"));
    });
  }

  void cut(const std::string& task) {
    std::vector<std::string> others{"chief"};
    for (const std::string& other : homes()) {
      if (other != task) others.push_back(other);
    }
    for (int w = 0; w < settings_.workers; ++w) others.push_back(cat("worker ", w));
    const std::string other =
        others[static_cast<std::size_t>(clock_.number(static_cast<int>(others.size())))];
    note(cat(task, " and ", other, " are cut off"));
    network_.cut(task, other);
    down_.insert(task);
    clock_.after(clock_.seconds(3), [this, task, other] {
      network_.heal(task, other);
      down_.erase(down_.find(task));
      note(cat(task, " and ", other, " are joined"));
    });
  }

  void kill_worker(int w) {
    Worker& killed = worker(w);
    if (!killed.alive) return;
    note(cat("worker ", w, " is killed"));
    if (killed.closure >= 0) waiting_.insert(killed.closure);
    killed.closure = -1;
    ++killed.life;
    killed.alive = false;
    killed.calls->cancel();
    killed.calls = std::make_shared<Cancellation>();
    clock_.after(clock_.seconds(2), [this, w] {
      worker(w).alive = true;
      work(w);
    });
  }

  void work(int w) {
    Worker& idle = worker(w);
    if (!idle.alive || idle.closure >= 0 || waiting_.empty()) return;
    idle.closure = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    pull(w);
  }

  // Asks all servers, and calls `end` when they have answered. `ask` gets a server and what its
  // answer is to be given to.
  template <class Reply>
  void ask_all(int w,
               const std::function<void(std::size_t home, std::function<void(Status, Reply)>)>& ask,
               const std::function<void(std::size_t home, Reply reply)>& answer,
               const std::function<void()>& end) {
    Worker& asking = worker(w);
    const int round = ++asking.round, life = asking.life;
    asking.open = homes().size();
    for (std::size_t h = 0; h < homes().size(); ++h) {
      ask(h, [this, w, h, round, life, answer, end](const Status& status, Reply reply) {
        Worker& asked = worker(w);
        if (asked.life != life || asked.round != round) return;
        if (!status.ok()) {
          failure_ = cat(homes()[h], ": ", status.message);
          return;
        }
        --asked.open;
        answer(h, std::move(reply));
        if (asked.round == round && asked.open == 0) end();
      });
    }
  }

  void pull(int w) {
    worker(w).pulled.assign(homes().size(), {});
    ask_all<PulledParameters>(
        w,
        [this, w](std::size_t h, std::function<void(Status, PulledParameters)> done) {
          proto::PullRequest message;
          message.home = homes()[h];
          message.state_id = state_ids_[h];
          message.name = {"w", "count"};
          pull_parameters(worker(w).clients[h], write_message(message), worker(w).calls,
                          std::move(done));
        },
        [this, w](std::size_t h, PulledParameters pulled) {
          worker(w).pulled[h] = std::move(pulled);
        },
        [this, w] {
          clock_.after(clock_.seconds(0.05), [this, w, life = worker(w).life] {
            if (worker(w).life == life) push(w);
          });
        });
  }

  // The gradient of closure k is 1 at k.
  void push(int w) {
    Array gradient = Array::zeros(DType::kFloat, Shape{settings_.closures});
    gradient.data<float>()[worker(w).closure] = 1;
    Array ones(DType::kInt64, Shape{settings_.counters});
    std::fill_n(ones.data<std::int64_t>(), settings_.counters, 1);
    ask_all<Bytes>(
        w,
        [&](std::size_t h, ReplyDone done) {
          proto::PushRequest message;
          message.home = homes()[h];
          message.state_id = state_ids_[h];
          message.coordinator = "chief";
          message.sequence = worker(w).closure;
          message.finished_below = finished_below();
          message.version = worker(w).pulled[h].version;
          message.term = worker(w).pulled[h].term;
          Bytes request = write_message(message);
          append_named_tensor_field(request, 6, "w", gradient);
          proto::VariableChange counted;
          counted.name = "count";
          counted.adds = true;
          Bytes change = write_message(counted);
          append_tensor_field(change, 2, ones);
          append_bytes_field(request, 8, std::move(change));
          worker(w).clients[h]->call(kPushGradients, std::move(request), worker(w).calls,
                                     std::move(done));
        },
        [this, w](std::size_t, Bytes reply) {
          proto::PushResponse response;
          read_message(reply, response);
          if (response.stale) pull(w);  // the other answers are not waited for
        },
        [this, w] {
          Worker& pushing = worker(w);
          finished_.insert(std::exchange(pushing.closure, -1));
          progress_ = clock_.now();
          if (w < settings_.workers) work(w);
        });
  }

  std::int64_t finished_below() const {
    std::int64_t below = 0;
    while (finished_.contains(static_cast<int>(below))) ++below;
    return below;
  }

  // As `join` does: again and again, since a server that is started again does not know of it.
  void flush() {
    for (std::size_t h = 0; h < homes().size(); ++h) {
      if (!flushed_.insert(h).second) continue;
      proto::FlushRequest message;
      message.home = homes()[h];
      message.state_id = state_ids_[h];
      message.coordinator = "chief";
      message.below = settings_.closures;
      client("chief", homes()[h])
          ->call(kFlushGradients, write_message(message), nullptr,
                 [this, h](const Status&, const Bytes&) { flushed_.erase(h); });
    }
    clock_.after(0.5, [this] { flush(); });
  }

  void watch_progress() {
    if (clock_.now() - progress_ > 5) {
      for (int w = settings_.workers; w < settings_.workers + kSpareWorkers; ++w) {
        if (worker(w).closure >= 0) continue;
        work(w);
        break;
      }
      progress_ = clock_.now();
    }
    clock_.after(1, [this] { watch_progress(); });
  }

  // Everything is up and connected again before it is looked at.
  std::string check_all() {
    network_.set_loss(0);
    calm_ = true;
    settle(10);  // what was lost before is noticed
    if (!down_.empty() || !cluster_.complete()) settle(100);
    if (!down_.empty() || !cluster_.complete()) return "the variables are not replicated again";
    for (std::size_t h = 0; h < homes().size(); ++h) {
      const std::string wrong = check(h, homes()[h]);
      if (!wrong.empty()) return wrong;
    }
    // Each other replica has the state too: it is made the only one.
    for (std::size_t h = 0; settings_.replicas > 1 && h < homes().size(); ++h) {
      const std::vector<std::string> holders = cluster_.holders(homes()[h]);
      if (holders.size() != 2) return cat(homes()[h], " is on ", holders.size(), " servers");
      proto::SetViewRequest message;
      message.home = homes()[h];
      message.view.make().epoch = std::int64_t{1} << 60;
      message.view.make().chain = {holders.back()};
      network_.channel("test", holders.back())
          ->call(kSetView, write_message(message), {}, [](const Status&, const Bytes&) {});
      settle(1);
      const std::string wrong = check(h, holders.back());
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  void settle(double seconds) {
    const double until = clock_.now() + seconds;
    while (clock_.step(until)) continue;
  }

  std::string check(std::size_t h, const std::string& task) {
    proto::PullRequest message;
    message.home = homes()[h];
    message.state_id = state_ids_[h];
    message.name = {"w", "count"};
    std::string wrong = cat(task, " does not answer");
    bool answered = false;
    // A replica that is no home's answers, too.
    const auto asked =
        task == homes()[h]
            ? client("test", task)
            : std::make_shared<ParameterClient>(
                  std::vector<ParameterClient::Replica>{{task, network_.channel("test", task)}});
    pull_parameters(asked, write_message(message), nullptr,
                    [&](const Status& status, const PulledParameters& pulled) {
                      answered = true;
                      wrong = status.ok() ? check_values(h, pulled, task)
                                          : cat(task, ": ", status.message);
                    });
    const double until = clock_.now() + 100;
    while (!answered && clock_.step(until)) continue;
    return wrong;
  }

  std::string check_values(std::size_t h, const PulledParameters& pulled, const std::string& task) {
    if (pulled.values.size() != 2) return cat(task, " has lost a variable");
    const Array& counts = pulled.values.at("count");
    for (const std::int64_t count : counts.values<std::int64_t>()) {
      if (count != settings_.closures) return cat(task, " has counted ", count, " closures");
    }
    const Array& value = pulled.values.at("w");
    const auto [known, is_first] = values_.try_emplace(h, value);
    if (!is_first && !(known->second == value)) return cat(task, " differs from ", homes()[h]);
    const int replicas = settings_.to_aggregate;
    double sum = 0;
    for (int k = 0; k < settings_.closures; ++k) {
      const float applied = -value.data<float>()[k];
      sum += applied;
      // Momentum adds less than 1.
      const bool is_once = settings_.momentum ? applied >= 1.0f && applied <= 2.0f
                           : replicas == 0
                               ? applied == 1.0f
                               : applied > 0.99f / static_cast<float>(replicas) && applied <= 1.0f;
      if (!is_once) return cat("closure ", k, " is ", applied, " on ", task);
    }
    const auto updates = static_cast<double>(pulled.version);
    if (settings_.momentum) return {};
    if (sum < updates - 1e-3 || sum > updates + 1e-3)
      return cat(task, " has applied ", sum, " in ", updates, " updates");
    return {};
  }

  static constexpr int kSpareWorkers = 8;
  Clock clock_;
  std::string failure_, trace_;
  simulation::Network network_;
  const Settings settings_;
  Cluster cluster_;
  std::vector<std::string> state_ids_;
  std::vector<Worker> workers_;
  std::set<int> waiting_, finished_;
  std::set<std::size_t> flushed_;        // homes that have not answered yet
  std::map<std::size_t, Array> values_;  // that the homes had in the end
  std::multiset<std::string> down_;      // killed, paused or cut off
  double progress_ = 0;
  bool calm_ = false;  // nothing more goes wrong
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 300, start = 1;
  std::string report;
  bool messages = false;
  std::optional<double> loss;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    try {
      if (word == "--seeds") {
        seeds = std::stoull(value);
      } else if (word == "--start") {
        start = std::stoull(value);
      } else if (word == "--seed") {
        start = std::stoull(value);
        seeds = 1;
      } else if (word == "--report" && !value.empty()) {
        report = value;
      } else if (word == "--trace" && value == "messages") {
        messages = true;
      } else if (word == "--loss" && std::stod(value) >= 0 && std::stod(value) < 1) {
        loss = std::stod(value);
      } else {
        throw std::invalid_argument(word);
      }
    } catch (const std::logic_error&) {
      std::cerr << "simtest: what is '" << word << " " << value
                << "'?\nsimtest [--seeds N] [--start S] [--seed S] [--report FILE] "
                   "[--trace messages] [--loss SHARE]\n";
      return 2;
    }
  }
  std::uint64_t failed = 0;
  for (std::uint64_t seed = start; seed < start + seeds; ++seed) {
    Simulation simulation(seed, messages, loss);
    const std::string wrong = simulation.run();
    if (messages || (!wrong.empty() && failed == 0)) std::cout << simulation.trace();
    if (wrong.empty()) continue;
    std::cout << "seed " << seed << ": " << wrong << "\n";
    if (failed++ == 0 && !messages)
      std::cout << "(--seed " << seed << " --trace messages shows each message)\n";
  }
  std::cout << "simtest: " << seeds << " seeds, " << failed << " failed" << std::endl;
  if (!report.empty()) std::ofstream(report, std::ios::app) << seeds << " " << failed << "\n";
  return failed == 0 ? 0 : 1;
}
