#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/distribute_library.h"
#include "tandem/cli/for_option.h"
#include "tandem/cli/initializers.h"
#include "tandem/cli/machine_memory.h"
#include "tandem/cli/server_target.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/graph_session.h"
#include "tandem/io/npy.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::cli {
namespace {

// One element a line; lines may end as on Windows.
Array read_lines(const std::string& path) {
  const std::string text = fs::read_file(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (end < text.size() && lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return Array::vector(lines);
}

io::GraphSession::Feed read_feed(const std::string& text) {
  const std::size_t equals = text.find('=');
  io::GraphSession::Feed feed;
  feed.name = text.substr(0, equals);
  const std::string path = text.substr(equals + 1);
  feed.value = path.ends_with(".txt") ? read_lines(path) : io::read_npy(path);
  return feed;
}

// "x" and "x:0" are the same tensor.
void check_feeds(const std::vector<std::string>& feeds) {
  std::set<std::string> fed;
  for (const std::string& text : feeds) {
    std::string name = text.substr(0, text.find('='));
    if (name.ends_with(":0")) name.resize(name.size() - 2);
    if (!fed.insert(name).second)
      throw UsageError(cat("--feed: ", name, " is fed twice. Give each tensor once."));
  }
}

// "scope/node:1" is saved as "scope_node_1.npy".
std::string file_name(const std::string& fetch) {
  std::string name = fetch.find(':') == std::string::npos ? fetch + ":0" : fetch;
  for (char& c : name) {
    if (c == ':' || c == '/') c = '_';
  }
  return name + ".npy";
}

void check_file_names(const RunArguments& arguments) {
  std::map<std::string, std::string> seen;
  for (const std::string& fetch : arguments.fetches) {
    const std::string name = fetch.find(':') == std::string::npos ? fetch + ":0" : fetch;
    const auto [other, is_new] = seen.emplace(file_name(fetch), name);
    if (is_new) continue;
    if (other->second == name) {
      throw UsageError(cat("--fetch: ", fetch, " is fetched twice, and both would be saved as ",
                           other->first, ". Fetch each tensor once."));
    }
    throw UsageError(cat("--fetch: ", other->second, " and ", name, " would both be saved as ",
                         other->first, ". Fetch them apart."));
  }
}

// The values of a fetch: of one step as it is, of several as one with a leading axis of steps.
class Fetched {
 public:
  Fetched(std::string fetch, int steps) : fetch_(std::move(fetch)), steps_(steps) {}

  void add(Array value) {
    if (steps_ == 1) {
      all_ = std::move(value);
      return;
    }
    if (added_ == 0) make_room(value);
    if (!(value.shape() == shape_)) {
      throw InvalidArgumentError(cat("'", fetch_, "' has shape ", shape_, " in one step and ",
                                     value.shape(), " in another, so they can't be saved as one."));
    }
    const std::int64_t count = value.num_elements(), at = added_++ * count;
    if (value.dtype() == DType::kString) {
      const auto from = value.values<std::string>();
      std::copy(from.begin(), from.end(), all_.data<std::string>() + at);
    } else if (count > 0) {
      std::memcpy(static_cast<char*>(all_.raw_data()) +
                      static_cast<std::size_t>(at) * dtype_size(value.dtype()),
                  value.raw_data(), value.num_bytes());
    }
  }
  const std::string& fetch() const { return fetch_; }
  const Array& all() const { return all_; }

 private:
  void make_room(const Array& first) {
    shape_ = first.shape();
    check_fits(
        cat("--steps ", steps_, ": '", fetch_, "' (", first.dtype(), shape_, ") of all steps"),
        static_cast<double>(first.num_bytes()) * steps_,
        "Ask for fewer steps; --repeat runs steps without keeping what they fetch.");
    std::vector<std::int64_t> dims = shape_.to_vector();
    dims.insert(dims.begin(), steps_);
    all_ = Array(first.dtype(), Shape(dims));
  }

  std::string fetch_;
  int steps_;
  std::int64_t added_ = 0;
  Shape shape_;  // of a step
  Array all_;
};

io::GraphSession::RunOptions run_options(const RunArguments& arguments) {
  io::GraphSession::RunOptions options;
  if (arguments.timeout) {
    const std::chrono::duration<double> seconds(*arguments.timeout);
    options.timeout = std::max(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds),
                               std::chrono::nanoseconds(1));
  }
  return options;
}

// A step on the values that are fed.
using Step = std::function<std::vector<Array>()>;

std::vector<Fetched> run_steps(const std::vector<std::string>& fetches, int steps,
                               const Step& step) {
  std::vector<Fetched> fetched;
  for (const std::string& fetch : fetches) fetched.emplace_back(fetch, steps);
  for (int i = 0; i < steps; ++i) {
    std::vector<Array> results = step();
    for (std::size_t f = 0; f < results.size(); ++f) fetched[f].add(std::move(results[f]));
  }
  return fetched;
}

void report_fetch(const RunArguments& arguments, const Fetched& fetched) {
  const std::string& fetch = fetched.fetch();
  const Array& value = fetched.all();
  std::cout << fetch << ": " << value.dtype() << value.shape();
  if (arguments.out.empty()) {
    std::cout << '\n' << value.to_string() << '\n';
    return;
  }
  const std::string path = arguments.out + "/" + file_name(fetch);
  for_option("--out " + arguments.out, [&] { io::write_npy(path, value); });
  std::cout << " in " << path << '\n';
}

// 0 if no device counted anything: small blocks are not counted.
std::uint64_t peak_bytes(const Runtime& runtime) {
  std::uint64_t bytes = 0;
  for (const auto& device : runtime.devices()) bytes += device->allocator().stats().peak;
  return bytes;
}

void check_device(const Runtime& runtime, const std::string& wanted) {
  const DeviceSpec spec = DeviceSpec::parse(wanted);
  std::string names;
  for (const auto& device : runtime.devices()) {
    if (spec.matches(DeviceSpec::parse(device->name()))) return;
    names += "\n  " + device->name();
  }
  throw InvalidArgumentError(cat("There is no device '", wanted, "'. The devices are:", names));
}

struct Timing {
  double least = 0;
  double median = 0;
};

Timing measure(const RunArguments& arguments, const Step& step) {
  std::vector<double> times;
  for (int i = 0; i < arguments.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  return {times.front(), times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2};
}

void report(const RunArguments& arguments, const Timing& timing, int nodes, std::uint64_t peak) {
  const bool timed = arguments.repeat > 0;
  if (arguments.json) {
    const auto number = [&](double ms) { return timed ? nlohmann::ordered_json(ms) : nullptr; };
    const auto peak_json = peak > 0 ? nlohmann::ordered_json(peak) : nullptr;
    std::cout << nlohmann::ordered_json{{"min_ms", number(timing.least)},
                                        {"median_ms", number(timing.median)},
                                        {"steps", arguments.steps},
                                        {"nodes", nodes},
                                        {"peak_bytes", peak_json}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << nodes << (nodes == 1 ? " node" : " nodes");
  if (timed) {
    std::cout << std::fixed << std::setprecision(3) << ", " << timing.median
              << " ms a step (median of " << arguments.repeat << "), " << timing.least
              << " at best";
  }
  if (peak > 0) {
    std::cout << std::fixed << std::setprecision(1) << ", " << static_cast<double>(peak) / 1e6
              << " MB at most";
  }
  std::cout << '\n';
}

struct Feeds {
  std::vector<std::string> names;
  std::vector<Array> values;
};

Feeds read_feeds(const RunArguments& arguments) {
  Feeds feeds;
  for (const std::string& text : arguments.feeds) {
    io::GraphSession::Feed feed = for_option("--feed " + text, [&] { return read_feed(text); });
    feeds.names.push_back(feed.name);
    feeds.values.push_back(std::move(feed.value));
  }
  return feeds;
}

void make_out(const RunArguments& arguments) {
  if (arguments.out.empty()) return;
  for_option("--out " + arguments.out,
             [&] { fs::file_system_of(arguments.out).make_directories(arguments.out); });
}

void finish(const RunArguments& arguments, const std::vector<Fetched>& fetched, const Step& step,
            int nodes) {
  for (const Fetched& one : fetched) report_fetch(arguments, one);
  const Timing timing = arguments.repeat > 0 ? measure(arguments, step) : Timing{};
  report(arguments, timing, nodes, peak_bytes(Runtime::current()));
}

void run_signature(const RunArguments& arguments) {
  if (!arguments.targets.empty() || !arguments.inits.empty())
    throw UsageError("--target and --init are nodes of a graph: a signature has none");
  const ModelSignature signature(arguments.saved_model, arguments.fetches);
  const Feeds feeds = read_feeds(arguments);
  make_out(arguments);
  const Step step = [&] {
    std::optional<DeadlineScope> deadline;
    if (const auto timeout = run_options(arguments).timeout) deadline.emplace(*timeout);
    return signature.run(feeds.names, feeds.values);
  };
  finish(arguments, run_steps(signature.fetches(), arguments.steps, step), step,
         signature.num_nodes());
}

void run_here(const RunArguments& arguments) {
  const bool is_model = !arguments.saved_model.folder.empty();
  if (arguments.no_optimize)
    config::optimizer::set_experimental_options({.disable_meta_optimizer = true});
  Runtime::Options threads;
  if (!arguments.threads.empty()) {
    threads.inter_op_threads = arguments.threads[0];
    threads.intra_op_threads = arguments.threads[1];
  }
  Runtime runtime(threads);
  RuntimeScope scope(runtime);
  check_device(runtime, arguments.device);
  if (is_model) {
    std::optional<DeviceScope> device;
    if (!arguments.device.empty()) device.emplace(arguments.device);
    return run_signature(arguments);
  }
  io::ImportOptions import;
  import.allow_unsupported = true;  // what the step needs is checked before it runs
  import.device = arguments.device;
  io::ImportedGraph imported = io::read_graph_def(arguments.graph, import);
  const std::shared_ptr<const Graph> graph = imported.graph;
  const io::GraphSession session(std::move(imported));

  const Feeds feeds = read_feeds(arguments);
  const auto prepared = session.prepare(feeds.names, arguments.fetches, arguments.targets);
  make_out(arguments);
  const Step step = [&] { return prepared.run(feeds.values, run_options(arguments)); };
  std::vector<Fetched> fetched;
  try {
    for (const std::string& init : arguments.inits)
      session.prepare(feeds.names, {}, {init}).run(feeds.values, run_options(arguments));
    fetched = run_steps(arguments.fetches, arguments.steps, step);
  } catch (const FailedPreconditionError&) {
    if (!arguments.inits.empty()) throw;
    rethrow_proposing_init("td run", *graph);
  }
  finish(arguments, fetched, step, prepared.num_nodes());
}

// The graph's bytes, as a server takes them.
std::string binary_graph_def(const std::string& path) {
  if (!path.ends_with(".pbtxt")) return fs::read_file(path);
  io::ImportOptions import;
  import.allow_unsupported = true;
  return io::export_graph_def(io::read_graph_def(path, import)).bytes;
}

// `td run --target grpc://HOST:PORT`: the same in a session of that server.
void run_remotely(const RunArguments& arguments, const ServerTarget& server) {
  if (!arguments.device.empty() || !arguments.threads.empty() || arguments.no_optimize) {
    throw UsageError(
        "--device, --threads and --no-optimize are the server's to decide: leave them out with "
        "--target grpc://...");
  }
  Feeds given = read_feeds(arguments);
  std::vector<distribute::RemoteSession::Feed> feeds;
  for (std::size_t i = 0; i < given.names.size(); ++i)
    feeds.emplace_back(given.names[i], std::move(given.values[i]));
  const std::string bytes = binary_graph_def(arguments.graph);
  distribute::RemoteSession::Options opened;
  opened.security = server.security;
  const auto session = distribute_library().open_session(server.address, bytes, opened);
  const distribute::RemoteSession::RunOptions options{.timeout = run_options(arguments).timeout};
  for (const std::string& init : arguments.inits) session->run(feeds, {}, {init}, options);
  const Step step = [&] {
    return session->run(feeds, arguments.fetches, arguments.targets, options);
  };
  make_out(arguments);
  const std::vector<Fetched> fetched = run_steps(arguments.fetches, arguments.steps, step);
  for (const Fetched& one : fetched) report_fetch(arguments, one);
  const Timing timing = arguments.repeat > 0 ? measure(arguments, step) : Timing{};
  io::ImportOptions import;
  import.allow_unsupported = true;
  const io::ImportedGraph imported = io::import_graph_def(bytes, import);
  report(arguments, timing, static_cast<int>(imported.graph->num_nodes()), 0);
}

}  // namespace

void run_graph(const RunArguments& given) {
  // One of the targets may name a server instead of a node.
  RunArguments arguments = given;
  const ServerTarget server = take_server(arguments.targets, arguments);
  const bool is_model = !arguments.saved_model.folder.empty();
  if (arguments.graph.empty() && !is_model)
    throw UsageError("GRAPH or --saved-model DIR is required");
  if (!server.address.empty() && is_model)
    throw UsageError("--saved-model runs here: a server takes a GRAPH");
  if (!is_model && arguments.fetches.empty() && arguments.targets.empty())
    throw UsageError("--fetch or --target is required");
  check_file_names(arguments);
  check_feeds(arguments.feeds);
  server.address.empty() ? run_here(arguments) : run_remotely(arguments, server);
}

}  // namespace tandem::cli
