#include "tandem/cli/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/core/version.h"
#include "tandem/graph/op_registry.h"

// The one file that CLI11 is compiled for: it takes seconds in each.

namespace tandem::cli {
namespace {

constexpr int kDone = 0;
constexpr int kWrongUsage = 2;

// A command whose arguments `add` declares and which `run` runs.
template <class Arguments>
void add_command(CLI::App& td, const char* name, const char* about,
                 void (*add)(CLI::App&, Arguments&), void (*run)(const Arguments&)) {
  CLI::App* command = td.add_subcommand(name, about);
  const auto arguments = std::make_shared<Arguments>();
  add(*command, *arguments);
  command->callback([arguments, run] { run(*arguments); });
}

// A command that returns an exit code of its own, into `code`.
template <class Arguments>
void add_command(CLI::App& td, const char* name, const char* about,
                 void (*add)(CLI::App&, Arguments&), int (*run)(const Arguments&), int& code) {
  CLI::App* command = td.add_subcommand(name, about);
  const auto arguments = std::make_shared<Arguments>();
  add(*command, *arguments);
  command->callback([arguments, run, &code] { code = run(*arguments); });
}

// An option that takes one value, and may be given several times.
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<std::string>& values,
                      const char* about) {
  return command.add_option(name, values, about)->expected(1)->take_all()->allow_extra_args(false);
}

void add_graph(CLI::App& command, std::string& graph) {
  command.add_option("GRAPH", graph, "A GraphDef: binary (.pb) or text (.pbtxt)")->required();
}

// Or a SavedModel, of which feeds and fetches are a signature's.
void add_graph_or_model(CLI::App& command, std::string& graph, SavedModelArguments& model) {
  auto* file = command.add_option("GRAPH", graph, "A GraphDef: binary (.pb) or text (.pbtxt)");
  auto* folder = command.add_option(
      "--saved-model", model.folder,
      "A SavedModel's folder instead; feeds and fetches are the names of a signature");
  folder->type_name("DIR")->excludes(file);
  add_list(command, "--tag", model.tags,
           "TAG of the SavedModel's graph; may be repeated (the only graph, or serve)")
      ->needs(folder);
  command.add_option("--signature", model.signature, "NAME of a signature (serving_default)")
      ->needs(folder);
}

CLI::Option* add_json(CLI::App& command, bool& json, const char* about = nullptr) {
  return command.add_flag("--json", json, about ? about : "Print as JSON, for programs");
}

// What CLI::Range says of "1.5" and of "abc" is that they are in no range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        std::int64_t value = 0;
        const bool number = CLI::detail::lexical_cast(text, value);
        if (number && value >= least && value <= most) return {};
        const std::size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
        const bool digits =
            sign < text.size() && text.find_first_not_of("0123456789", sign) == std::string::npos;
        if (!number && !digits) return "'" + text + "' is no whole number";
        return text + " is not in the range " + std::to_string(least) + " to " +
               std::to_string(most);
      },
      "INT in [" + std::to_string(least) + " - " + std::to_string(most) + "]");
}

// Seconds or milliseconds; NaN is no number.
CLI::Validator time_range() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || std::isnan(value))
          return "'" + text + "' is no number";
        return value >= 0 && value <= 1e9 ? "" : text + " is not in the range 0 to 1e9";
      },
      "FLOAT in [0 - 1e9]");
}

// "2,1": inter and intra. Returns what is wrong, or "".
std::string read_threads(const std::string& text, std::vector<int>& threads) {
  constexpr int kMax = 4096;  // of a runtime
  threads.clear();
  const std::vector<std::string> parts = CLI::detail::split(text, ',');
  // `split` drops an empty part behind the last comma.
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty() || text.back() == ',')
    return "write INTER,INTRA, such as 1,2, not " + text;
  for (std::string part : parts) {
    if (const std::string why = whole_number(1, kMax)(part); !why.empty()) return why;
    CLI::detail::lexical_cast(part, threads.emplace_back());
  }
  return {};
}

// An unset variable of the shell gives an empty value: never what was meant.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    option->transform(CLI::Validator(
        [](std::string& text) -> std::string {
          return text.empty() ? "the value is empty. Is a variable of the shell not set?" : "";
        },
        ""));
  }
}

void add_ops(CLI::App& command, OpsArguments& a) {
  command.add_option("NAME", a.name, "The op to print");
  command.add_option("--class", a.kernel_class,
                     "CLASS: only ops with a kernel for devices of this class (cpu, cuda)");
  add_json(command, a.json);
}

void add_devices(CLI::App& command, DevicesArguments& a) { add_json(command, a.json); }

void add_threads(CLI::App& command, std::vector<int>& threads) {
  command
      .add_option_function<std::string>(
          "--threads",
          [&threads](const std::string& text) {
            if (const std::string why = read_threads(text, threads); !why.empty())
              throw CLI::ValidationError("--threads", why);
          },
          "Threads between and within ops, such as 1,2; 1 to 4096 of each")
      ->type_name("INTER,INTRA");
}

void add_tls(CLI::App& command, TlsArguments& a) {
  command.add_option("--tls-cert", a.tls_cert, "This task's certificate (PEM)");
  command.add_option("--tls-key", a.tls_key, "The certificate's key (PEM)");
  command.add_option("--tls-ca", a.tls_ca,
                     "The authority that signs all tasks' certificates (PEM)");
}

void add_run(CLI::App& command, RunArguments& a) {
  add_graph_or_model(command, a.graph, a.saved_model);
  add_list(command, "--feed", a.feeds,
           "NAME[:I]=FILE: give a tensor the value of a .npy file, or of the lines of a .txt file; "
           "may be repeated")
      ->check([](const std::string& text) {
        const std::size_t equals = text.find('=');
        return equals == std::string::npos || equals == 0 || equals + 1 == text.size()
                   ? "write NAME[:I]=FILE, not " + text
                   : std::string();
      });
  add_list(command, "--fetch", a.fetches, "NAME[:I]: a tensor to compute; may be repeated");
  add_list(command, "--target", a.targets,
           "NODE: a node to run without fetching anything; may be repeated. grpc://HOST:PORT runs "
           "everything in a session of that server instead of here; grpcs://HOST:PORT does so with "
           "certificates");
  add_tls(command, a);
  add_list(command, "--init", a.inits,
           "NODE: a node to run once, first; more of them one after the other");
  command.add_option("--steps", a.steps, "How many steps to run and save (1)")
      ->check(whole_number(1, 1'000'000'000));
  command
      .add_option("--repeat", a.repeat,
                  "How many steps to run after those, to time them; a --target that trains or "
                  "counts goes on in them (1; 0 for none)")
      ->check(whole_number(0, 1'000'000'000));
  command
      .add_option("--timeout", a.timeout,
                  "Seconds after which a step that has not ended fails, naming what was still "
                  "running; greater than 0, such as 0.5")
      ->check([](const std::string& text) {
        char* end = nullptr;
        const double seconds = std::strtod(text.c_str(), &end);
        return end == text.c_str() || *end != '\0' || !(seconds > 0) || seconds > 1e9
                   ? "give seconds, more than 0 and up to 1e9, not " + text
                   : std::string();
      });
  command.add_option("--device", a.device, "Device of nodes that name none");
  add_threads(command, a.threads);
  command.add_option("--out", a.out, "Save each fetch as DIR/NAME_I.npy");
  command.add_flag("--no-optimize", a.no_optimize,
                   "Run the nodes as they stand in the graph: nothing folded, merged or fused");
  add_json(command, a.json, "End with one line of JSON, for programs");
}

void add_graph_command(CLI::App& command, GraphArguments& a) {
  command.footer(
      "Exit code 0: the graph could be read, also where nodes cannot run; they are listed.");
  add_graph(command, a.graph);
  auto* dot = command.add_flag("--dot", a.dot, "Print the graph for Graphviz");
  auto* html = command.add_flag("--html", a.html, "Print a page that draws the graph");
  auto* json = add_json(command, a.json);
  command.add_flag("--optimized", a.optimized,
                   "The graph as it runs, with everything fed and fetched: after optimization");
  dot->excludes(html)->excludes(json);
  html->excludes(json);
}

void add_step(CLI::App& command, StepArguments& a, const char* target = "NAME of a node to run") {
  add_graph_or_model(command, a.graph, a.saved_model);
  command.add_option("--policy", a.policy, "How to place: greedy or cost")
      ->check(CLI::IsMember({"greedy", "cost"}));
  command.add_option("--costs", a.costs, "Measured costs, as a profile saves them");
  add_list(command, "--feed", a.feeds, "NAME=SHAPE of a fed tensor, such as x=32,784");
  add_list(command, "--fetch", a.fetches, "NAME of a wanted tensor; else all that nothing reads");
  add_list(command, "--target", a.targets, target);
  command.add_flag("--no-soft-placement", a.hard_placement,
                   "Fail where a device that is asked for can't be had");
}

void add_simulate(CLI::App& command, SimulateArguments& a) {
  add_step(command, a);
  command.add_option("--devices", a.devices, "A file of the devices (JSON)")->required();
  add_json(command, a.json);
}

void add_explain(CLI::App& command, ExplainArguments& a) {
  add_step(command, a,
           "NAME of a node to run. grpc://HOST:PORT explains by the devices of that server's "
           "cluster instead of this machine's; grpcs://HOST:PORT does so with certificates");
  add_tls(command, a);
  auto* devices = command.add_option(
      "--devices", a.devices,
      "A file of devices that need not be there (JSON); else those of this machine, "
      "emulated ones (TANDEM_EMULATE) among them");
  auto* measure =
      command
          .add_option(
              "--measure", a.measure,
              "Run so many steps here, with zeros for what is fed, and report what they took")
          ->check(whole_number(1, 1'000'000))
          ->excludes(devices)
          ->excludes("--costs");
  add_list(command, "--init", a.inits,
           "NODE: a node to run once, before what is measured; more of them one after the other")
      ->needs(measure);
  command.add_option("--rows", a.rows, "Rows of a table in the text")
      ->check(whole_number(1, 1'000'000));
  command.add_flag("--no-advice", a.no_advice, "Do not simulate what might be better");
  auto* json = add_json(command, a.json);
  auto* dot = command.add_flag("--dot", a.dot, "Print the graph for Graphviz");
  command.add_option("--html", a.html, "Write a page that shows all of it to this file");
  dot->excludes(json);
}

void add_data_bench(CLI::App& command, DataBenchArguments& a) {
  command
      .add_option("library", a.library,
                  "A shared library that exports extern \"C\" void "
                  "tandem_dataset(tandem::data::Dataset*)")
      ->required();
  command
      .add_option("--seconds", a.seconds,
                  "Stop after so long (5; 0: run to the end of the dataset)")
      ->check(time_range());
  command.add_option("--elements", a.elements, "Stop after so many elements")
      ->check(whole_number(1, std::int64_t{1} << 62));
  command
      .add_option("--step", a.step_ms,
                  "Milliseconds to wait after each element, as if it was trained on")
      ->check(time_range());
  add_json(command, a.json);
}

void add_inspect(CLI::App& command, InspectArguments& a) {
  command.footer("With two files, exit code 1: they differ.");
  command
      .add_option("PATH", a.path,
                  "A checkpoint, SavedModel, GraphDef, .keras, .h5, .safetensors, .npz, .npy, "
                  "TFRecord or event file")
      ->required();
  command.add_option("OTHER", a.other, "A second one: print what differs");
  command.add_flag("--stats", a.stats, "Read the tensors: smallest, largest, mean, deviation");
  add_json(command, a.json);
}

void add_convert(CLI::App& command, ConvertArguments& a) {
  command.footer(
      "TO is .safetensors, .npz, .h5, .pb, .pbtxt, or else what a checkpoint's names begin with.");
  command.add_option("FROM", a.from, "What `td inspect` reads, if it holds tensors or a graph")
      ->required();
  command.add_option("TO", a.to, "The file to write; its ending says the format")->required();
}

void add_server(CLI::App& command, ServerArguments& a) {
  command.footer(
      "Without --cluster and --job the environment is asked: TF_CONFIG, Slurm, MPI, or "
      "TANDEM_CLUSTER_JOBS in a stateful set (docs/cluster.md). Prints one line once it listens; "
      "SIGTERM lets the calls in progress end.");
  command.add_option("--job", a.job, "The job that this task belongs to");
  command.add_option("--task", a.task, "Its number in the job (0)")
      ->check(whole_number(0, 1'000'000));
  auto* cluster = command.add_option("--cluster", a.cluster,
                                     "JOB=HOST:PORT[,HOST:PORT...][;JOB=...]: all tasks");
  auto* etcd =
      command
          .add_option(
              "--etcd", a.etcd,
              "HOST:PORT of an etcd: this task joins --job there with its --address, gets a "
              "number, and serves once the cluster has the tasks that "
              "TANDEM_CLUSTER_JOBS says (ps=1;worker=2)")
          ->excludes("--task")
          ->excludes("--cluster");
  command.add_option("--etcd-cluster", a.etcd_cluster, "NAME of the cluster there (tandem)")
      ->needs(etcd);
  command.add_option("--address", a.address, "HOST:PORT of this task, as others reach it")
      ->needs(etcd);
  command.add_option("--cluster-file", a.cluster_file, "A file of that, or of TF_CONFIG's JSON")
      ->excludes(cluster);
  command.add_option("--port", a.port, "Listen here instead of on the cluster's port; 0: any")
      ->check(whole_number(0, 65535));
  add_tls(command, a);
  command.add_flag(
      "--insecure", a.insecure,
      "Serve in the clear beyond this machine: anyone who reaches it can run anything");
  command
      .add_option("--replicas", a.replicas,
                  "How many parameter servers hold each variable, so that the loss of one loses "
                  "nothing")
      ->check(whole_number(1, 16));
  command
      .add_option("--heartbeat-timeout", a.heartbeat,
                  "Seconds after which a step fails whose other tasks have stopped answering (10)")
      ->check(CLI::Range(0.1, 86'400.0));
  command.add_option("--durable", a.durable,
                     "A folder for a parameter server's variables and each update of them, so that "
                     "it goes on with them when it is started again");
  command
      .add_option("--metrics-port", a.metrics_port,
                  "Serve Prometheus' figures at http://localhost:PORT/metrics")
      ->check(whole_number(1, 65535));
  add_threads(command, a.threads);
}

void add_cluster_status(CLI::App& command, ClusterStatusArguments& a) {
  command.add_option("--target", a.target, "grpc://HOST:PORT of any task of the cluster")
      ->required();
  add_tls(command, a);
  add_json(command, a.json);
}

void add_version(CLI::App& app) {
  app.set_version_flag("--version", "tandem " TANDEM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
}

// The words in CLI11's order, the last first. "--out=" is "--out" with an empty value, not without
// any.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool empty = word.starts_with("--") && word.find('=') == word.size() - 1;
    words.push_back(empty ? word.substr(0, word.size() - 1) : word);
    if (empty) words.emplace_back();
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int wrong_usage(const std::string& why) {
  std::cerr << why << "\nRun with --help for more information.\n";
  return kWrongUsage;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App td("Tandem: dataflow machine learning in native C++", "td");
  td.require_subcommand(1);
  add_command(td, "ops", "List the ops, or print the declaration of one", add_ops, run_ops);
  add_command(td, "devices", "List the devices and what is set for each", add_devices, run_devices);
  add_command(td, "run", "Run a graph that TensorFlow wrote", add_run, run_graph);
  add_command(td, "graph", "Summarize or draw a graph that TensorFlow wrote", add_graph_command,
              show_graph);
  add_command(td, "simulate",
              "Forecast a step of a graph on devices that need not be there (docs/placement.md)",
              add_simulate, run_simulate);
  add_command(td, "explain",
              "Explain where the ops of a graph run and why, what is copied, and what would help",
              add_explain, run_explain);
  add_command(td, "data-bench",
              "Run an input pipeline and explain where its time goes and what would help",
              add_data_bench, run_data_bench);
  int code = kDone;
  add_command(td, "inspect", "Say what a file of any format holds, or how two files differ",
              add_inspect, run_inspect, code);
  add_command(td, "convert", "Write the tensors, or the graph, of a file in another format",
              add_convert, run_convert);
  add_command(td, "server", "Serve a task of a cluster, for TensorFlow's clients and ours",
              add_server, run_server);
  CLI::App* cluster = td.add_subcommand("cluster", "Look at a cluster that runs");
  cluster->require_subcommand(1);
  add_command(*cluster, "status", "Show tasks, devices, sessions and running steps",
              add_cluster_status, show_cluster_status);
  add_version(td);
  std::vector<std::string> names;
  for (CLI::App* command : td.get_subcommands({})) {
    refuse_empty_values(*command);
    add_version(*command);
    names.push_back(command->get_name());
  }
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.size() > 1 && word[0] == '-' && !td.get_option_no_throw(word)) {
    return wrong_usage("td: there is no option '" + word +
                       "'. Options of a command follow it, as in `td ops --json`.");
  }
  if (!word.empty() && word[0] != '-' &&
      std::find(names.begin(), names.end(), word) == names.end()) {
    const std::string near = nearest_name(word, names);
    std::string why = "td: there is no command '" + word + "'." +
                      (near.empty() ? "" : " Did you mean '" + near + "'?") + " Commands:";
    for (const std::string& name : names) why += ' ' + name;
    return wrong_usage(why);
  }
  try {
    td.parse(words_of(argc, argv));
  } catch (const CLI::ParseError& error) {
    // Help and version are results; what is wrong with the usage is not.
    return td.exit(error, std::cout, std::cerr) == 0 ? kDone : kWrongUsage;
  } catch (const UsageError& error) {
    return wrong_usage(error.what());
  }
  return code;
}

}  // namespace tandem::cli
