// Parameter servers under a simulated network and clock: simtest --seeds N [--start S] [--report
// FILE].
//
// A seed decides delays, lost and repeated messages, their order, and when servers and workers are
// killed and started again. Servers are the real ParameterStore with its real log, on a file system
// in memory. Workers are simulated: they pull, compute, push, and repeat what is not answered, as
// ClosureService does. Everything else happens on one thread, so that a seed replays exactly.
//
// What has to hold in the end: no closure hangs, each was applied exactly once on each server, and
// the number of updates is what the servers say.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/parameter_store.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/tensor_message.h"

using namespace tandem;
using namespace tandem::distribute;

namespace {

constexpr double kTooLong = 10'000;  // seconds of the simulated clock
constexpr double kResendAfter = 1.0;

/// The clock, and what is to happen.
class Clock {
 public:
  explicit Clock(std::uint64_t seed) : random_(seed) {}
  void after(double seconds, std::function<void()> event) {
    events_.push({now_ + seconds, number_++, std::move(event)});
  }
  bool step() {
    if (events_.empty() || events_.top().time > kTooLong) return false;
    const auto event = events_.top().run;
    now_ = events_.top().time;
    events_.pop();
    event();
    return true;
  }
  double now() const { return now_; }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  double seconds(double mean) { return std::exponential_distribution<>(1 / mean)(random_); }
  int number(int below) { return std::uniform_int_distribution<>(0, below - 1)(random_); }

 private:
  struct Event {
    double time;
    std::uint64_t number;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };
  std::mt19937_64 random_;
  double now_ = 0;
  std::uint64_t number_ = 0;
  std::priority_queue<Event> events_;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : clock_(seed),
        num_servers_(1 + clock_.number(2)),
        num_workers_(1 + clock_.number(3)),
        num_closures_(10 + clock_.number(30)),
        replicas_(clock_.chance(0.5) ? 0 : num_workers_),
        loss_(clock_.chance(0.3) ? 0 : 0.2 * clock_.seconds(0.5)),
        folder_(cat("ram://simulation/", seed)) {
    loss_ = std::min(loss_, 0.4);
    for (int s = 0; s < num_servers_; ++s) {
      servers_.emplace_back();
      start(s);
      create(s);
    }
    // Behind them are those that begin where the others wait for each other, as Coordinator's do.
    workers_.resize(static_cast<std::size_t>(num_workers_ + kSpareWorkers));
    for (int k = 0; k < num_closures_; ++k) waiting_.insert(k);
    for (int w = 0; w < num_workers_; ++w) work(w);
    const int kills = clock_.number(6);
    for (int i = 0; i < kills; ++i) {
      const double at = clock_.seconds(3);
      if (clock_.chance(0.5)) {
        clock_.after(at, [this, s = clock_.number(num_servers_)] { kill_server(s); });
      } else {
        clock_.after(at, [this, w = clock_.number(num_workers_)] { kill_worker(w); });
      }
    }
    if (replicas_ > 0) {
      flush();
      watch_progress();
    }
  }

  /// Empty if all is well, else what is wrong.
  std::string run() {
    while (finished_.size() < static_cast<std::size_t>(num_closures_)) {
      if (!clock_.step())
        return cat("closures hang: ", num_closures_ - static_cast<int>(finished_.size()));
    }
    for (int s = 0; s < num_servers_; ++s) {
      Server& server = at(s);
      if (!server.store) start(s);
      const std::string wrong = check(s);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }
  std::string trace() const { return trace_; }

 private:
  struct Server {
    std::unique_ptr<ParameterStore> store;
    std::string state_id;
    int life = 0;  // the how-manieth start
  };
  struct Worker {
    int life = 0;
    bool alive = true;
    int closure = -1;
    int attempt = 0;  // answers to earlier ones are not looked at
    std::vector<std::int64_t> versions;
    std::set<int> open;  // servers that have not answered
    bool stale = false;
  };
  using Method = void (ParameterStore::*)(Bytes, const ReplyDone&);
  using Answer = std::function<void(const Status&, Bytes)>;

  Server& at(int s) { return servers_[static_cast<std::size_t>(s)]; }
  Worker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  void note(const std::string& line) { trace_ += cat(clock_.now(), ": ", line, "\n"); }

  void start(int s) {
    at(s).store = std::make_unique<ParameterStore>(cat("server ", s), cat(folder_, "/", s));
    ++at(s).life;
  }

  // As it is done before a training begins: nothing is lost yet.
  void create(int s) {
    proto::CreateParametersRequest message;
    message.optimizer.make().name = "sgd";
    message.optimizer.make().learning_rate = 1;
    message.replicas_to_aggregate = replicas_;
    Bytes request = write_message(message);
    append_named_tensor_field(request, 1, "w", Array::zeros(DType::kFloat, Shape{num_closures_}));
    at(s).store->create(std::move(request), [this, s](const Status&, Bytes reply) {
      proto::CreateParametersResponse response;
      read_message(reply, response);
      at(s).state_id = response.state_id;
    });
    at(s).store->wait_until_durable();
  }

  void kill_server(int s) {
    if (!at(s).store) return;
    note(cat("server ", s, " is killed"));
    ++at(s).life;  // answers of this one are lost
    at(s).store->close();
    at(s).store.reset();
    clock_.after(clock_.seconds(1), [this, s] {
      if (!at(s).store) start(s);
      note(cat("server ", s, " is started again"));
    });
  }

  void kill_worker(int w) {
    Worker& killed = worker(w);
    if (!killed.alive) return;
    note(cat("worker ", w, " is killed"));
    if (killed.closure >= 0) waiting_.insert(killed.closure);
    killed = {.life = killed.life + 1, .alive = false, .versions = {}, .open = {}};
    clock_.after(clock_.seconds(2), [this, w] {
      worker(w).alive = true;
      work(w);
    });
  }

  // A request, and perhaps a second copy of it.
  void send(int s, Method method, const Bytes& request, const Answer& answer) {
    const int copies = clock_.chance(loss_) ? 0 : clock_.chance(loss_) ? 2 : 1;
    for (int c = 0; c < copies; ++c) {
      clock_.after(clock_.seconds(0.01),
                   [this, s, method, request, answer] { deliver(s, method, request, answer); });
    }
  }

  void deliver(int s, Method method, const Bytes& request, const Answer& answer) {
    if (!at(s).store) return;
    const int life = at(s).life;
    const ReplyDone done = [this, s, life, answer](const Status& status, Bytes reply) {
      const MutexLock lock(mutex_);
      replies_.push_back({s, life, [answer, status, reply] { answer(status, reply); }});
    };
    Bytes copy(std::string(Bytes(request).flat()));
    try {
      ((*at(s).store).*method)(std::move(copy), done);
    } catch (...) {
      done(Status::of(std::current_exception()), {});
    }
    at(s).store->wait_until_durable();
    std::vector<Reply> replies;
    {
      const MutexLock lock(mutex_);
      replies.swap(replies_);
    }
    for (Reply& reply : replies) {
      if (reply.life != at(reply.server).life || clock_.chance(loss_)) continue;
      clock_.after(clock_.seconds(0.01), std::move(reply.run));
    }
  }

  void work(int w) {
    Worker& idle = worker(w);
    if (!idle.alive || idle.closure >= 0 || waiting_.empty()) return;
    idle.closure = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    pull(w);
  }

  void begin_round(int w) {
    Worker& worker = this->worker(w);
    ++worker.attempt;
    for (int s = 0; s < num_servers_; ++s) worker.open.insert(s);
    worker.stale = false;
  }

  // Sends to a server until it answers this round.
  void ask(int w, int s, Method method, const Bytes& request,
           const std::function<void(Bytes)>& answer) {
    const int attempt = worker(w).attempt, life = worker(w).life;
    const auto is_open = [this, w, s, attempt, life] {
      const Worker& asking = worker(w);
      return asking.life == life && asking.attempt == attempt && asking.open.contains(s);
    };
    send(s, method, request, [this, w, s, is_open, answer](const Status& status, Bytes reply) {
      if (!is_open() || status.code == Code::kUnavailable || status.code == Code::kCancelled)
        return;
      if (!status.ok()) {
        failure_ = status.message;
        note(cat("worker ", w, ": ", status.message));
        return;
      }
      worker(w).open.erase(s);
      answer(std::move(reply));
    });
    clock_.after(kResendAfter + clock_.seconds(0.2),
                 [this, w, s, method, request, answer, is_open] {
                   if (is_open()) ask(w, s, method, request, answer);
                 });
  }

  void pull(int w) {
    begin_round(w);
    worker(w).versions.assign(static_cast<std::size_t>(num_servers_), 0);
    for (int s = 0; s < num_servers_; ++s) {
      proto::PullRequest message;
      message.state_id = at(s).state_id;
      message.name = {"w"};
      ask(w, s, &ParameterStore::pull, write_message(message), [this, w, s](Bytes reply) {
        proto::PullResponse response;
        read_message(reply, response);
        worker(w).versions[static_cast<std::size_t>(s)] = response.version;
        if (worker(w).open.empty()) push(w);
      });
    }
  }

  // The gradient of closure k is 1 at k.
  void push(int w) {
    begin_round(w);
    Array gradient = Array::zeros(DType::kFloat, Shape{num_closures_});
    gradient.data<float>()[worker(w).closure] = 1;
    for (int s = 0; s < num_servers_; ++s) {
      proto::PushRequest message;
      message.state_id = at(s).state_id;
      message.coordinator = "chief";
      message.sequence = worker(w).closure;
      message.finished_below = finished_below();
      message.version = worker(w).versions[static_cast<std::size_t>(s)];
      Bytes request = write_message(message);
      append_named_tensor_field(request, 6, "w", gradient);
      ask(w, s, &ParameterStore::push, request, [this, w](Bytes reply) {
        proto::PushResponse response;
        read_message(reply, response);
        Worker& pushing = worker(w);
        pushing.stale = pushing.stale || response.stale;
        if (!pushing.open.empty()) return;
        if (pushing.stale) return pull(w);
        finished_.insert(std::exchange(pushing.closure, -1));
        progress_ = clock_.now();
        if (w < num_workers_) work(w);
      });
    }
  }

  std::int64_t finished_below() const {
    std::int64_t below = 0;
    while (finished_.contains(static_cast<int>(below))) ++below;
    return below;
  }

  // As `join` does: again and again, since a server that is started again does not know of it.
  void flush() {
    for (int s = 0; s < num_servers_; ++s) {
      proto::FlushRequest message;
      message.state_id = at(s).state_id;
      message.coordinator = "chief";
      message.below = num_closures_;
      send(s, &ParameterStore::flush, write_message(message), [](const Status&, const Bytes&) {});
    }
    clock_.after(0.5, [this] { flush(); });
  }

  void watch_progress() {
    if (clock_.now() - progress_ > 5) {
      for (int w = num_workers_; w < num_workers_ + kSpareWorkers; ++w) {
        if (worker(w).closure >= 0) continue;
        work(w);
        break;
      }
      progress_ = clock_.now();
    }
    clock_.after(1, [this] { watch_progress(); });
  }

  std::string check(int s) {
    if (!failure_.empty()) return failure_;
    proto::PullRequest message;
    message.state_id = at(s).state_id;
    message.name = {"w"};
    std::string wrong;
    at(s).store->pull(write_message(message), [&](const Status& status, Bytes reply) {
      proto::PullResponse response;
      read_message(reply, response);
      if (!status.ok() || response.parameter.size() != 1) {
        wrong = cat("server ", s, " has lost the variable: ", status.message);
        return;
      }
      const Array value = read_tensor(response.parameter[0].value, reply.owner());
      double sum = 0;
      for (int k = 0; k < num_closures_; ++k) {
        const float applied = -value.data<float>()[k];
        sum += applied;
        const bool is_once =
            replicas_ == 0 ? applied == 1.0f
                           : applied > 0.99f / static_cast<float>(replicas_) && applied <= 1.0f;
        if (!is_once) wrong = cat("closure ", k, " is ", applied, " on server ", s);
      }
      const auto updates = static_cast<double>(response.version);
      if (sum < updates - 1e-3 || sum > updates + 1e-3)
        wrong = cat("server ", s, " has applied ", sum, " in ", updates, " updates");
    });
    return wrong;
  }

  struct Reply {
    int server;
    int life;
    std::function<void()> run;
  };
  static constexpr int kSpareWorkers = 8;
  Clock clock_;
  double progress_ = 0;
  const int num_servers_, num_workers_, num_closures_, replicas_;
  double loss_;
  const std::string folder_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::set<int> waiting_, finished_;
  std::string failure_, trace_;
  Mutex mutex_;
  std::vector<Reply> replies_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 300, start = 1;
  std::string report;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--seeds") seeds = std::stoull(argv[i + 1]);
    if (word == "--start") start = std::stoull(argv[i + 1]);
    if (word == "--report") report = argv[i + 1];
  }
  std::uint64_t failed = 0;
  for (std::uint64_t seed = start; seed < start + seeds; ++seed) {
    Simulation simulation(seed);
    const std::string wrong = simulation.run();
    if (wrong.empty()) continue;
    if (failed++ == 0) std::cout << "seed " << seed << "\n" << simulation.trace() << wrong << "\n";
  }
  std::cout << "simtest: " << seeds << " seeds, " << failed << " failed" << std::endl;
  if (!report.empty()) std::ofstream(report, std::ios::app) << seeds << " " << failed << "\n";
  return failed == 0 ? 0 : 1;
}
