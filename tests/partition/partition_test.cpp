// Splits every stored graph at random over two to four tasks of this process, and compares with the
// whole graph, to the bit: partition_test [--graphs FOLDER]… [--seeds N] [--start S] [--report
// FILE]
//
// A seed decides graph, tasks, devices, whether the graph is optimised before or its functions
// expanded, so that branches and loops are split too, where its nodes go, and whether a fault or a
// cancellation is put in somewhere. `--seeds 1 --start S` runs one again.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/partition/partitioned_function.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"

#include "tests/partition/random_split.h"
#include "tests/partition/stored_graph.h"

namespace tandem::partition_test {
namespace {

using Values = std::vector<Array>;

// The latest step's; to look at when it hangs.
Ref<LocalRendezvous> g_rendezvous;

// Ends the process, naming the seed and what the step waits for, if it hangs.
class Watchdog {
 public:
  static constexpr auto kPatience = std::chrono::seconds(60);
  void begin(std::uint64_t seed) {
    std::lock_guard lock(mutex_);
    seed_ = seed;
    deadline_ = std::chrono::steady_clock::now() + kPatience;
  }
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1), [&] { return over_; })) {
      if (std::chrono::steady_clock::now() < deadline_) continue;
      std::printf("seed %llu hangs\n", static_cast<unsigned long long>(seed_));
      if (const Ref<LocalRendezvous> rendezvous = g_rendezvous) {
        for (const std::string& key : rendezvous->unanswered())
          std::printf("  waits for %s\n", key.c_str());
      }
      std::fflush(stdout);
      std::abort();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::uint64_t seed_ = 0;
  bool over_ = false;
  std::thread thread_;
};

bool same_bits(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::kString) {
    const auto x = a.values<std::string>(), y = b.values<std::string>();
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }
  if (is_object(a.dtype())) return true;  // handles: of another runtime
  return a.num_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0;
}

FunctionRef as_function(const MutableFunction& f) {
  MutableFunction copy = f.clone();
  return std::make_shared<const Function>("whole", std::move(copy.graph), std::move(copy.args),
                                          std::move(copy.results), std::move(copy.control_results),
                                          false);
}

Values call(const FunctionRef& function, const Values& args) {
  std::vector<Tensor> tensors(args.begin(), args.end());
  Values results;
  for (const Tensor& t : call_function(function, tensors)) results.push_back(t.array());
  return results;
}

// The results of every step of the whole graph, in a runtime of its own.
std::vector<Values> run_whole(const StoredGraph& graph, const MutableFunction& step) {
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  for (const MutableFunction& init : graph.initializers) call(as_function(init), {});
  const FunctionRef function = as_function(step);
  std::vector<Values> results;
  for (int i = 0; i < graph.steps; ++i) results.push_back(call(function, graph.feeds));
  return results;
}

// What the whole graph gives, and which results are not the same each time (of random ops without a
// seed, clocks and so on), which cannot be compared.
struct Reference {
  std::vector<Values> steps;
  std::vector<bool> comparable;
};

Reference reference_of(const StoredGraph& graph, const MutableFunction& step) {
  Reference reference;
  reference.steps = run_whole(graph, step);
  const std::vector<Values> again = run_whole(graph, step);
  for (std::size_t r = 0; r < step.results.size(); ++r) {
    bool same = true;
    for (std::size_t s = 0; s < again.size(); ++s)
      same = same && same_bits(reference.steps[s][r], again[s][r]);
    reference.comparable.push_back(same);
  }
  return reference;
}

std::shared_ptr<Cancellation> g_cancellation;

class Seed {
 public:
  Seed(std::uint64_t seed, const StoredGraph& graph, const Reference& reference,
       const MutableFunction& step)
      : seed_(seed), random_(seed), graph_(graph), reference_(reference), step_(step) {}

  void run() {
    for (const MutableFunction& init : graph_.initializers) owners_.add(init);
    owners_.add(step_);
    make_tasks();
    for (const MutableFunction& init : graph_.initializers) step_of(split(init), {});
    const int what = static_cast<int>(random_() % 10);
    const bool with_fault = what >= 6;
    const Fault fault = what >= 8 ? Fault::kCancel : Fault::kThrow;
    AssignedGraph assigned =
        assign_at_random(step_.clone(), owners_, devices_of(task_pointers()), seed_);
    const bool armed = with_fault && add_fault(assigned, Runtime::current().ops(), random_);
    const PartitionedFunction function(
        partition(std::move(assigned), Runtime::current().ops(), by_, false), task_pointers());
    arm(Fault::kNone, nullptr);
    for (int s = 0; s < graph_.steps; ++s) {
      const bool last = s + 1 == graph_.steps;
      if (armed && last) return run_with_fault(function, fault, static_cast<std::size_t>(s));
      compare(step_of(function, graph_.feeds), static_cast<std::size_t>(s));
    }
  }

 private:
  void make_tasks() {
    const int tasks = 2 + static_cast<int>(random_() % 3);
    by_ = random_() % 4 == 0 ? PartitionBy::kDevice : PartitionBy::kTask;
    const int cpus = random_() % 3 == 0 ? 2 : 1;
    for (int t = 0; t < tasks; ++t) {
      Runtime::Options options;
      options.inter_op_threads = 1 + static_cast<int>(random_() % 2);
      options.intra_op_threads = 1;
      options.task = cat("/job:worker/task:", t);
      options.devices.logical["CPU:0"].resize(static_cast<std::size_t>(cpus));
      tasks_.push_back(std::make_unique<Runtime>(options));
    }
  }

  std::vector<Runtime*> task_pointers() const {
    std::vector<Runtime*> tasks;
    for (const auto& task : tasks_) tasks.push_back(task.get());
    return tasks;
  }

  PartitionedFunction split(const MutableFunction& f) {
    const std::vector<Runtime*> tasks = task_pointers();
    return {partition(assign_at_random(f.clone(), owners_, devices_of(tasks), seed_),
                      Runtime::current().ops(), by_, false),
            tasks};
  }

  static void expect(bool holds, const std::string& what) {
    if (!holds) throw std::logic_error(what);
  }

  static void expect_empty(const LocalRendezvous& rendezvous) {
    for (const auto& keys : {rendezvous.unreceived(), rendezvous.unanswered()})
      expect(keys.empty(), keys.empty() ? "" : "left in the rendezvous: " + keys.front());
  }

  static Values step_of(const PartitionedFunction& function, const Values& args) {
    const Ref<LocalRendezvous> rendezvous = g_rendezvous = make_ref<LocalRendezvous>();
    Values results = function.run(args, *rendezvous);
    expect_empty(*rendezvous);
    return results;
  }

  void compare(const Values& results, std::size_t step) const {
    const Values& wanted = reference_.steps[step];
    expect(results.size() == wanted.size(), "another number of results");
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (reference_.comparable[r] && !same_bits(results[r], wanted[r])) {
        throw std::logic_error(cat("result ", r, " of step ", step, " is ", results[r].to_string(),
                                   ", of the whole graph ", wanted[r].to_string()));
      }
    }
  }

  // The step that was to be cancelled may have been done before.
  void run_with_fault(const PartitionedFunction& function, Fault fault, std::size_t step) {
    g_cancellation = std::make_shared<Cancellation>();
    const CancellationScope scope(g_cancellation);
    const Ref<LocalRendezvous> rendezvous = g_rendezvous = make_ref<LocalRendezvous>();
    arm(fault, [] { g_cancellation->cancel(); });
    try {
      compare(function.run(graph_.feeds, *rendezvous), step);
      expect(!(fault == Fault::kThrow && fault_fired()), "the fault did not end the step");
    } catch (const DataLossError& error) {
      expect(fault == Fault::kThrow && fault_fired() &&
                 std::string(error.what()).find(kFaultText) != std::string::npos,
             cat("another error: ", error.what()));
    } catch (const CancelledError& error) {
      expect(fault == Fault::kCancel && fault_fired(), cat("cancelled: ", error.what()));
    }
    arm(Fault::kNone, nullptr);
    expect_empty(*rendezvous);
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  const StoredGraph& graph_;
  const Reference& reference_;
  const MutableFunction& step_;
  SharedOwners owners_;
  PartitionBy by_ = PartitionBy::kTask;
  std::vector<std::unique_ptr<Runtime>> tasks_;
};

struct Arguments {
  std::vector<std::string> folders;
  std::string report;
  std::string only;
  std::uint64_t seeds = 1000, start = 0;
  bool verbose = false;
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      arguments.verbose = true;
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + " needs a value");
    if (name == "--graphs") {
      arguments.folders.emplace_back(argv[i]);
    } else if (name == "--report") {
      arguments.report = argv[i];
    } else if (name == "--only") {
      arguments.only = argv[i];
    } else if (name == "--seeds") {
      arguments.seeds = std::stoull(argv[i]);
    } else if (name == "--start") {
      arguments.start = std::stoull(argv[i]);
    } else {
      throw std::invalid_argument("unknown argument " + name);
    }
  }
  return arguments;
}

// One form of a stored graph, and what it gives.
struct Form {
  const MutableFunction* step;
  Reference reference;
};

struct Loaded {
  StoredGraph graph;
  std::vector<Form> forms;
};

int run(const Arguments& arguments) {
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});  // whose ops the graphs have
  const RuntimeScope scope(runtime);
  config::enable_op_determinism();
  std::vector<std::unique_ptr<Loaded>> graphs;
  for (const std::string& folder : arguments.folders) {
    for (const std::string& path : find_cases(folder)) {
      if (!arguments.only.empty() && path.find(arguments.only) == std::string::npos) continue;
      graphs.push_back(std::make_unique<Loaded>(Loaded{read_case(path), {}}));
    }
  }
  // From here on graphs run as they are.
  config::optimizer::Options options = config::optimizer::get_experimental_options();
  options.disable_meta_optimizer = true;
  config::optimizer::set_experimental_options(options);
  std::size_t results = 0, comparable = 0;
  for (auto& loaded : graphs) {
    const StoredGraph& graph = loaded->graph;
    try {
      const auto add = [&](const MutableFunction& step) {
        loaded->forms.push_back({&step, reference_of(graph, step)});
      };
      add(graph.step);
      add(graph.expanded_step ? *graph.expanded_step : graph.step);
      add(graph.optimized_step);
    } catch (const std::exception& error) {
      std::printf("%s does not run whole: %s\n", graph.name.c_str(), error.what());
      return 1;
    }
    for (const bool same : loaded->forms[0].reference.comparable) {
      ++results;
      comparable += same;
    }
  }
  if (graphs.empty()) {
    std::printf("there are no graphs\n");
    return 1;
  }
  Watchdog watchdog;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = arguments.start; seed < arguments.start + arguments.seeds; ++seed) {
    watchdog.begin(seed);
    Loaded& loaded = *graphs[seed % graphs.size()];
    const Form& form = loaded.forms[(seed / graphs.size()) % loaded.forms.size()];
    const auto begin = std::chrono::steady_clock::now();
    try {
      Seed(seed, loaded.graph, form.reference, *form.step).run();
    } catch (const std::exception& error) {
      ++failed;
      std::printf("seed %llu (%s) FAILED: %s\n", static_cast<unsigned long long>(seed),
                  loaded.graph.name.c_str(), error.what());
      std::fflush(stdout);
    }
    if (arguments.verbose) {
      std::printf("seed %llu %s %.3f s\n", static_cast<unsigned long long>(seed),
                  loaded.graph.name.c_str(),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      std::fflush(stdout);
    }
  }
  std::printf("%zu graphs, %zu of %zu results the same in each run; %llu seeds, %llu failed\n",
              graphs.size(), comparable, results, static_cast<unsigned long long>(arguments.seeds),
              static_cast<unsigned long long>(failed));
  if (!arguments.report.empty()) {
    std::ofstream(arguments.report, std::ios::app) << arguments.seeds << ' ' << failed << '\n';
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::partition_test

int main(int argc, char** argv) {
  try {
    return tandem::partition_test::run(tandem::partition_test::read_arguments(argc, argv));
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
