#include "tandem/distribute/cluster_resolver.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/etcd_client.h"
#include "tandem/fs/file_system.h"

namespace tandem::distribute {
namespace {

constexpr auto kEtcdPatience = std::chrono::seconds(10);

int parse_number(std::string_view text, std::string_view what) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || next != end || number < 0)
    throw InvalidArgumentError(cat(what, " is '", text, "', which is no number."));
  return number;
}

// The first of several variables that is set.
std::string first_of(const ClusterResolver::Environment& environment,
                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return {};
}

int rank_of(const ClusterResolver::Environment& environment,
            std::initializer_list<const char*> names) {
  const std::string value = first_of(environment, names);
  if (value.empty()) throw InvalidArgumentError(cat(*names.begin(), " is not set."));
  return parse_number(value, *names.begin());
}

// The first port of a host's tasks.
int port_of(const ClusterResolver::Environment& environment, int otherwise) {
  const std::string text = environment("TANDEM_PORT");
  if (text.empty()) return otherwise;
  const int port = parse_number(text, "TANDEM_PORT");
  if (port < 1 || port > 65535)
    throw InvalidArgumentError(cat("TANDEM_PORT is ", text, ", which is no port."));
  return port;
}

// Ranks to tasks: the first ones to the first job.
ClusterResolver by_rank(const std::vector<std::string>& addresses, int rank,
                        ClusterResolver::JobSizes jobs) {
  const int size = static_cast<int>(addresses.size());
  if (jobs.empty()) jobs.emplace_back("worker", size);
  int wanted = 0;
  for (const auto& [job, tasks] : jobs) wanted += tasks;
  if (wanted != size) {
    throw InvalidArgumentError(cat("The jobs have ", wanted, " tasks, but ", size,
                                   size == 1 ? " process was" : " processes were", " started."));
  }
  if (rank >= size)
    throw InvalidArgumentError(cat("The rank is ", rank, ", but there are ", size, " processes."));
  ClusterSpec cluster;
  std::string own_job;
  int own_task = -1, next = 0;
  for (const auto& [job, tasks] : jobs) {
    for (int task = 0; task < tasks; ++task, ++next) {
      cluster.set_address(job, task, addresses[static_cast<std::size_t>(next)]);
      if (next != rank) continue;
      own_job = job;
      own_task = task;
    }
  }
  return {std::move(cluster), own_job, own_task};
}

// Slurm's "2(x3),1": 2, 2, 2, 1.
std::vector<int> expand_counts(std::string_view text) {
  std::vector<int> counts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    int times = 1;
    if (const std::size_t open = part.find("(x"); open != std::string_view::npos) {
      const std::size_t close = part.find(')', open);
      if (close == std::string_view::npos)
        throw InvalidArgumentError(cat("SLURM_TASKS_PER_NODE has '", part, "'."));
      times = parse_number(part.substr(open + 2, close - open - 2), "SLURM_TASKS_PER_NODE");
      part = part.substr(0, open);
    }
    if (times > 1'000'000) throw InvalidArgumentError("SLURM_TASKS_PER_NODE is too long.");
    counts.insert(counts.end(), static_cast<std::size_t>(times),
                  parse_number(part, "SLURM_TASKS_PER_NODE"));
  }
  return counts;
}

}  // namespace

ClusterResolver::ClusterResolver(ClusterSpec cluster, String job, int task)
    : cluster_(std::move(cluster)), job_(std::move(job)), task_(task) {
  if (task_ >= 0) static_cast<void>(cluster_.address(job_, task_));
}

ClusterResolver ClusterResolver::from_environment() {
  return from_environment([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  });
}

ClusterResolver ClusterResolver::from_environment(const Environment& environment) {
  if (const std::string json = environment("TF_CONFIG"); !json.empty()) return from_tf_config(json);
  const std::string jobs = environment("TANDEM_CLUSTER_JOBS");
  const JobSizes sizes = jobs.empty() ? JobSizes() : parse_job_sizes(jobs);
  if (!environment("SLURM_PROCID").empty()) return from_slurm(environment, sizes);
  if (!first_of(environment, {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}).empty())
    return from_mpi(environment, sizes);
  if (!jobs.empty()) return from_kubernetes(environment);
  throw InvalidArgumentError(
      "Nothing says which cluster this process belongs to: set TF_CONFIG, start it by srun or "
      "mpirun, or name jobs and tasks in TANDEM_CLUSTER_JOBS.");
}

ClusterResolver ClusterResolver::from_tf_config(StringView json) {
  const nlohmann::json config = nlohmann::json::parse(json, nullptr, false);
  const auto fail = [](const char* why) -> InvalidArgumentError {
    return InvalidArgumentError(cat("TF_CONFIG ", why));
  };
  if (!config.is_object()) throw fail("is no JSON object.");
  ClusterSpec cluster;
  const auto jobs = config.find("cluster");
  if (jobs == config.end() || !jobs->is_object()) throw fail("has no object 'cluster'.");
  for (const auto& [job, tasks] : jobs->items()) {
    if (tasks.is_array()) {
      int number = 0;
      for (const auto& address : tasks) {
        if (!address.is_string()) throw fail("has an address that is no text.");
        cluster.set_address(job, number++, address.get<std::string>());
      }
    } else if (tasks.is_object()) {
      for (const auto& [number, address] : tasks.items()) {
        if (!address.is_string()) throw fail("has an address that is no text.");
        cluster.set_address(job, parse_number(number, "A task of TF_CONFIG"),
                            address.get<std::string>());
      }
    } else {
      throw fail("has a job that is no list of addresses.");
    }
  }
  const auto task = config.find("task");
  if (task == config.end()) return {std::move(cluster), "", -1};
  if (!task->is_object() || !task->contains("type") || !(*task)["type"].is_string())
    throw fail("has a 'task' without 'type'.");
  int index = 0;
  if (task->contains("index")) {
    const auto& value = (*task)["index"];
    if (value.is_string()) {
      index = parse_number(value.get<std::string>(), "The task's index in TF_CONFIG");
    } else if (value.is_number_unsigned() && value.get<std::uint64_t>() <= 1'000'000) {
      index = value.get<int>();
    } else {
      throw fail("has a task whose 'index' is no number.");
    }
  }
  std::string job = (*task)["type"].get<std::string>();
  if (cluster.num_tasks(job) == 0) return {std::move(cluster), std::move(job), -1};
  return {std::move(cluster), std::move(job), index};
}

ClusterResolver ClusterResolver::from_file(const String& path) {
  std::string text = fs::read_file(path);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] == '{') return from_tf_config(text);
  std::string cluster;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find_first_not_of(" \t\r") != std::string::npos && line.front() != '#')
      cluster += line + ';';
    at = end + 1;
  }
  return {ClusterSpec::parse(cluster), "", -1};
}

ClusterResolver ClusterResolver::from_slurm(const Environment& environment, const JobSizes& jobs,
                                            int first_port) {
  const int rank = rank_of(environment, {"SLURM_PROCID"});
  const int port = port_of(environment, first_port);
  const std::vector<std::string> hosts =
      expand_hosts(first_of(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}));
  const std::vector<int> counts =
      expand_counts(first_of(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}));
  if (hosts.empty()) throw InvalidArgumentError("SLURM_STEP_NODELIST is not set.");
  if (counts.size() != hosts.size()) {
    throw InvalidArgumentError(cat("SLURM_STEP_TASKS_PER_NODE is of ", counts.size(),
                                   " nodes, but SLURM_STEP_NODELIST names ", hosts.size(), "."));
  }
  std::vector<std::string> addresses;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (int i = 0; i < counts[h]; ++i) addresses.push_back(cat(hosts[h], ":", port + i));
  }
  return by_rank(addresses, rank, jobs);
}

ClusterResolver ClusterResolver::from_mpi(const Environment& environment, const JobSizes& jobs,
                                          int first_port) {
  const int rank = rank_of(environment, {"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  const int port = port_of(environment, first_port);
  const int size = rank_of(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  std::vector<std::string> hosts;
  for (std::string list = environment("TANDEM_HOSTS"); !list.empty();) {
    const std::size_t end = std::min(list.find(','), list.size());
    hosts.push_back(list.substr(0, end));
    list.erase(0, end + 1);
  }
  if (hosts.empty()) {
    const std::string here =
        first_of(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
    if (!here.empty() && parse_number(here, "OMPI_COMM_WORLD_LOCAL_SIZE") != size) {
      throw InvalidArgumentError(
          "MPI has started processes on several machines: list the hosts of all ranks in "
          "TANDEM_HOSTS, separated by commas.");
    }
    hosts.assign(static_cast<std::size_t>(size), "localhost");
  }
  if (hosts.size() != static_cast<std::size_t>(size)) {
    throw InvalidArgumentError(
        cat("TANDEM_HOSTS lists ", hosts.size(), " hosts, but there are ", size, " ranks."));
  }
  std::map<std::string, int> used;
  std::vector<std::string> addresses;
  for (const std::string& host : hosts) addresses.push_back(cat(host, ":", port + used[host]++));
  return by_rank(addresses, rank, jobs);
}

ClusterResolver ClusterResolver::from_kubernetes(const Environment& environment) {
  const JobSizes jobs = parse_job_sizes(environment("TANDEM_CLUSTER_JOBS"));
  const std::string pod = environment("HOSTNAME");
  const std::string service = environment("TANDEM_SERVICE");
  const int port = port_of(environment, 2222);
  ClusterSpec cluster;
  std::string own_job;
  int own_task = -1;
  for (const auto& [job, tasks] : jobs) {
    for (int task = 0; task < tasks; ++task) {
      const std::string name = cat(job, "-", task);
      cluster.set_address(job, task, cat(name, ".", service.empty() ? job : service, ":", port));
      // A set may carry the training's name in front: "digits-worker-3".
      if (pod != name && !pod.ends_with("-" + name)) continue;
      own_job = job;
      own_task = task;
    }
  }
  if (own_task >= 0) {
    const std::string name = cat(own_job, "-", own_task);
    const std::string prefix = pod.substr(0, pod.size() - name.size());
    if (!prefix.empty()) {
      for (const auto& [job, tasks] : jobs) {
        for (int task = 0; task < tasks; ++task) {
          cluster.set_address(job, task,
                              cat(prefix, job, "-", task, ".",
                                  service.empty() ? prefix + job : service, ":", port));
        }
      }
    }
  }
  return {std::move(cluster), own_job, own_task};
}

ClusterResolver ClusterResolver::from_etcd(const String& endpoint, const JobSizes& jobs,
                                           const String& cluster_name,
                                           std::chrono::milliseconds patience) {
  const EtcdClient etcd(endpoint, cluster_name, kEtcdPatience);
  return {etcd.wait_for(jobs, patience), "", -1};
}

ClusterResolver::JobSizes ClusterResolver::parse_job_sizes(StringView given) {
  std::string_view text = given;
  JobSizes jobs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(";,"), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      throw InvalidArgumentError(cat("'", part, "' is no JOB=TASKS."));
    const int tasks = parse_number(part.substr(equals + 1), cat("The size of '", part, "'"));
    if (tasks > 100'000) throw InvalidArgumentError(cat("'", part, "' are too many tasks."));
    jobs.emplace_back(part.substr(0, equals), tasks);
  }
  if (jobs.empty()) throw InvalidArgumentError("No jobs are named: write ps=2;worker=4.");
  return jobs;
}

std::vector<std::string> ClusterResolver::expand_hosts(StringView list) {
  std::vector<std::string> hosts;
  const auto fail = [&] { return InvalidArgumentError(cat("'", list, "' is no list of hosts.")); };
  std::string_view rest = list;
  while (!rest.empty()) {
    // One entry ends at a comma outside of brackets.
    std::size_t end = 0;
    for (bool inside = false; end < rest.size() && (inside || rest[end] != ','); ++end) {
      if (rest[end] == '[') inside = true;
      if (rest[end] == ']') inside = false;
    }
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t open = entry.find('[');
    if (open == std::string_view::npos) {
      hosts.emplace_back(entry);
      continue;
    }
    const std::size_t close = entry.find(']', open);
    if (close == std::string_view::npos) throw fail();
    std::string_view ranges = entry.substr(open + 1, close - open - 1);
    while (!ranges.empty()) {
      const std::size_t range_end = std::min(ranges.find(','), ranges.size());
      const std::string_view range = ranges.substr(0, range_end);
      ranges.remove_prefix(std::min(range_end + 1, ranges.size()));
      const std::size_t dash = range.find('-');
      const std::string_view from = range.substr(0, dash);
      const std::string_view to = dash == std::string_view::npos ? from : range.substr(dash + 1);
      const int first = parse_number(from, "A host's number");
      const int last = parse_number(to, "A host's number");
      if (last < first || last - first > 100'000) throw fail();
      for (int i = first; i <= last; ++i) {
        std::string digits = std::to_string(i);  // as many as the first number has
        if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
        hosts.push_back(cat(entry.substr(0, open), digits, entry.substr(close + 1)));
      }
    }
  }
  return hosts;
}

std::string ClusterResolver::master() const {
  for (const char* job : {"chief", "worker"}) {
    if (cluster_.num_tasks(job) > 0)
      return cat("grpc://", cluster_.jobs().find(job)->second.begin()->second);
  }
  if (cluster_.empty()) throw FailedPreconditionError("The cluster has no tasks.");
  return cat("grpc://", cluster_.jobs().begin()->second.begin()->second);
}

}  // namespace tandem::distribute
