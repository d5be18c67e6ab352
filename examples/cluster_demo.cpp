// Trains a network on handwritten digits with a parameter server and two workers, each a process of
// its own (`td server`). This process is the chief. On the way a worker is killed, and so is the
// parameter server where a folder is given for its updates, or where another one is its replica:
//
//     cluster_demo [FOLDER | --replicas]
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;
using td::distribute::ClusterSpec;
using td::distribute::ParameterServerStrategy;

namespace {

/// Processes of `td server`, which end with this.
class Servers {
 public:
  ~Servers() {
    for (const auto& [task, pid] : processes_) ::kill(pid, SIGTERM);
    for (const auto& [task, pid] : processes_) ::waitpid(pid, nullptr, 0);
  }
  void start(const ClusterSpec& cluster, const std::string& job, int task,
             const std::vector<std::string>& options = {}) {
    const std::string tool =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "td").string();
    std::vector<std::string> words{tool,        "server",           "--job",
                                   job,         "--task",           std::to_string(task),
                                   "--cluster", cluster.to_string()};
    words.insert(words.end(), options.begin(), options.end());
    std::cout << std::flush;
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::vector<char*> arguments;
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execv(tool.c_str(), arguments.data());
      std::_Exit(127);
    }
    processes_[job + std::to_string(task)] = pid;
  }
  void kill(const std::string& job, int task) {
    const auto found = processes_.find(job + std::to_string(task));
    ::kill(found->second, SIGKILL);
    ::waitpid(found->second, nullptr, 0);
    processes_.erase(found);
  }

 private:
  std::map<std::string, pid_t> processes_;
};

ClusterSpec free_cluster(int num_servers) {
  // Ports that are free now: servers of this process have them for a moment.
  ClusterSpec cluster;
  std::vector<std::pair<std::string, int>> tasks{{"worker", 0}, {"worker", 1}};
  for (int s = 0; s < num_servers; ++s) tasks.emplace_back("ps", s);
  std::vector<std::unique_ptr<td::distribute::Server>> held;
  for (const auto& [job, task] : tasks) {
    td::distribute::Server::Options options;
    held.push_back(std::make_unique<td::distribute::Server>(options));
    cluster.set_address(job, task, held.back()->address());
  }
  return cluster;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> server_options;
  const bool replicated = argc > 1 && argv[1] == std::string("--replicas");
  if (replicated) {
    server_options = {"--replicas", "2"};
  } else if (argc > 1) {
    server_options = {"--durable", argv[1]};
  }
  const int num_servers = replicated ? 2 : 1;
  const ClusterSpec cluster = free_cluster(num_servers);
  Servers servers;
  for (int s = 0; s < num_servers; ++s) servers.start(cluster, "ps", s, server_options);
  servers.start(cluster, "worker", 0);
  servers.start(cluster, "worker", 1);

  utils::set_random_seed(7);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);
  const Sequential model{Input({8, 8, 1}), Flatten(), Dense(64, {.activation = "relu"}), Dense(10)};
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  const metrics::SparseCategoricalAccuracy accuracy;

  ParameterServerStrategy strategy(
      {.cluster = cluster,
       .optimizer = {.name = "adam", .learning_rate = 0.003},
       .heartbeat_timeout = std::chrono::seconds(3),
       .on_event = [](const std::string& line) { std::cout << "chief: " << line << std::endl; }});
  strategy.add_variables(model.trainable_weights());
  std::cout << "chief: the model's variables are on /job:ps/task:0" << std::endl;

  const auto batches = train.shuffle(1024).batch(32, {.drop_remainder = true});
  const td::data::Element example = batches.iterator().next();
  const auto step = strategy.train_function(
      [&](std::span<const td::Tensor> batch) {
        return std::vector<td::Tensor>{loss_of(batch[1], model(batch[0], {.training = true}))};
      },
      {example[0], example[1]});

  constexpr int kEpochs = 8;
  float test_accuracy = 0;
  std::int64_t scheduled = 0;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    std::vector<ParameterServerStrategy::RemoteValue> losses;
    for (const auto& [images, labels] : batches.tuples<2>()) {
      losses.push_back(strategy.schedule(step, {images, labels}));
      ++scheduled;
      if (epoch == 4 && losses.size() == 10 && !server_options.empty()) {
        std::cout << "chief: the parameter server is killed, and started again" << std::endl;
        servers.kill("ps", 0);
        const auto killed = std::chrono::steady_clock::now();
        servers.start(cluster, "ps", 0, server_options);
        losses.push_back(strategy.schedule(step, {images, labels}));
        ++scheduled;
        strategy.fetch(losses.back());
        std::cout << "chief: a step was finished "
                  << std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::steady_clock::now() - killed)
                         .count()
                  << " ms later" << std::endl;
      }
      // The replica serves since then; the first server has got the variables from it.
      if (epoch == 6 && losses.size() == 10 && replicated) {
        strategy.wait_until_replicated(std::chrono::seconds(30));
        std::cout << "chief: parameter server 1 is killed" << std::endl;
        servers.kill("ps", 1);
      }
      if (epoch == 3 && losses.size() == 10) {
        std::cout << "chief: worker 1 is killed" << std::endl;
        servers.kill("worker", 1);
      }
    }
    strategy.join();
    float sum = 0;
    for (const auto& loss : losses) sum += strategy.fetch(loss)[0].item<float>();
    strategy.read_variables();
    accuracy.reset_state();
    for (const auto& [images, labels] : test.batch(256).tuples<2>())
      accuracy.update_state(labels, model(images));
    test_accuracy = accuracy.result().item<float>();
    std::cout << "epoch " << epoch << ": " << strategy.num_updates() << " updates, loss "
              << sum / static_cast<float>(losses.size()) << ", test accuracy " << test_accuracy
              << std::endl;
    if (epoch == 5) {
      std::cout << "chief: worker 1 is started again" << std::endl;
      servers.start(cluster, "worker", 1);
    }
  }
  std::cout << "chief: " << scheduled << " steps were scheduled, and the server has applied "
            << strategy.num_updates() << std::endl;
  if (strategy.num_updates() != scheduled) return 1;
  std::cout.precision(3);
  std::cout << std::fixed << "test accuracy: " << test_accuracy << std::endl;
  return test_accuracy > 0.93f ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "cluster_demo: " << error.what() << "\n";
  return 1;
}
