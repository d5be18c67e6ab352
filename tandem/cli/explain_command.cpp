#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/whole_graph.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/explain.h"

namespace tandem::cli {
namespace {

struct Options {
  std::string graph;
  std::string devices;
  std::string policy;
  std::string costs;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::string html;
  std::size_t rows = 60;
  bool json = false;
  bool dot = false;
  bool no_advice = false;
};

// "32,224,224,3"; nothing for a scalar; "?" where the size is not known.
PartialShape parse_shape(const std::string& feed, const std::string& text) {
  std::vector<std::int64_t> dims;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from);
    std::int64_t dim = -1;
    const auto [rest, failure] = std::from_chars(part.data(), part.data() + part.size(), dim);
    const bool number = failure == std::errc() && rest == part.data() + part.size() && dim >= 0;
    if (!number && part != "?") {
      throw CLI::ValidationError(
          "--feed", cat(feed, ": '", part,
                        "' is not a size. Give NAME=32,784, with ? for sizes that are not known."));
    }
    dims.push_back(number ? dim : -1);
    from = end + 1;
  }
  return PartialShape(dims);
}

WholeGraph step_of(const Options& options) {
  WholeGraph step;
  step.fetches = options.fetches;
  step.targets = options.targets;
  for (const std::string& feed : options.feeds) {
    const std::size_t equals = feed.find('=');
    if (equals == std::string::npos || equals == 0)
      throw CLI::ValidationError("--feed", cat(feed, ": give NAME=SHAPE, such as x=32,784."));
    std::string name = feed.substr(0, equals);
    if (name.ends_with(":0")) name.resize(name.size() - 2);
    step.shapes[name] = parse_shape(feed, feed.substr(equals + 1));
  }
  return step;
}

ExplainOptions explain_options(const Options& options) {
  ExplainOptions explain;
  explain.advice = !options.no_advice;
  if (!options.devices.empty())
    explain.devices = DeviceSet::parse_json(fs::read_file(options.devices));
  if (!options.policy.empty()) {
    explain.placement.emplace();
    explain.placement->policy =
        options.policy == "cost" ? PlacementPolicy::kCost : PlacementPolicy::kGreedy;
  }
  if (!options.costs.empty())
    explain.costs = std::make_shared<const CostProfile>(CostProfile::load(options.costs));
  return explain;
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + '"';
}

// For Graphviz, filled by device; copies are thick and tell their bytes.
void print_dot(const Explanation& e) {
  static const char* const kColours[] = {"#cfe0f8", "#cfeed3", "#fbe3c0", "#ead5f5",
                                         "#c9efec", "#f9d3d8", "#eef3bd", "#d7d7f7"};
  const auto at = [](const auto& list, int i) -> const auto& {
    return list[static_cast<std::size_t>(i)];
  };
  std::cout << "digraph explanation {\n  node [shape=box, style=filled, fontname=\"sans-serif\", "
               "fontsize=10];\n";
  for (const auto& op : e.ops) {
    if (op.is_constant) continue;
    std::cout << "  " << in_quotes(op.name) << " [label="
              << in_quotes(op.name + "\n" + op.op + "\n" + at(e.devices, op.device).short_name)
              << ", fillcolor=\"" << kColours[op.device % 8] << "\"];\n";
  }
  for (const auto& op : e.ops) {
    std::vector<int> inputs = op.inputs;
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const int in : inputs) {
      if (in < 0 || at(e.ops, in).is_constant) continue;
      std::cout << "  " << in_quotes(at(e.ops, in).name) << " -> " << in_quotes(op.name)
                << (at(e.ops, in).device != op.device ? " [penwidth=3, color=\"#c2571a\"]" : "")
                << ";\n";
    }
    for (const int before : op.controls) {
      if (before >= 0)
        std::cout << "  " << in_quotes(at(e.ops, before).name) << " -> " << in_quotes(op.name)
                  << " [style=dashed];\n";
    }
  }
  std::cout << "}\n";
}

void run(const Options& options) {
  const WholeGraph step = step_of(options);
  const ExplainOptions explain = explain_options(options);
  io::ImportOptions import;
  import.allow_unsupported = true;
  const WholeFunction whole = whole_function(io::read_graph_def(options.graph, import), step);
  Explanation explanation = explain_function(*whole.function, whole.arg_shapes, explain);
  explanation.title = options.graph;
  if (!options.html.empty()) {
    explanation.save_html(options.html);
    std::cerr << "td: wrote " << options.html << '\n';
  }
  if (options.json) {
    std::cout << explanation.to_json();
  } else if (options.dot) {
    print_dot(explanation);
  } else if (options.html.empty()) {
    std::cout << explanation.to_text(options.rows);
  }
}

}  // namespace

void add_explain_command(CLI::App& td) {
  CLI::App* command = td.add_subcommand(
      "explain", "Tell where the ops of a graph run and why, what is copied, and what would help");
  const auto options = std::make_shared<Options>();
  command->add_option("GRAPH", options->graph, "A GraphDef: binary (.pb) or text (.pbtxt)")
      ->required();
  command->add_option(
      "--devices", options->devices,
      "A file of devices that need not be there (JSON); else those of this machine, "
      "emulated ones (TANDEM_EMULATE) among them");
  command->add_option("--policy", options->policy, "How to place: greedy or cost")
      ->check(CLI::IsMember({"greedy", "cost"}));
  command->add_option("--costs", options->costs, "Measured costs, as a profile saves them");
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* what) {
    command->add_option(name, values, what)->allow_extra_args(false);
  };
  list("--feed", options->feeds, "NAME=SHAPE of a fed tensor, such as x=32,784");
  list("--fetch", options->fetches, "NAME of a wanted tensor; else all that nobody reads");
  list("--target", options->targets, "NAME of a node to run");
  command->add_option("--rows", options->rows, "Rows of a table in the text");
  command->add_flag("--no-advice", options->no_advice, "Do not simulate what might be better");
  auto* json = command->add_flag("--json", options->json, "Print as JSON, for programs");
  auto* dot = command->add_flag("--dot", options->dot, "Print the graph for Graphviz");
  command->add_option("--html", options->html, "Write a page that shows all of it to this file");
  dot->excludes(json);
  command->callback([options] { run(*options); });
}

}  // namespace tandem::cli
