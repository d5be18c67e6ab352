#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/step_options.h"
#include "tandem/core/error.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

struct Options : StepOptions {
  std::string html;
  std::size_t rows = 60;
  bool json = false;
  bool dot = false;
  bool no_advice = false;
};

ExplainOptions explain_options(const Options& options) {
  ExplainOptions explain;
  explain.advice = !options.no_advice;
  if (!options.devices.empty()) explain.devices = options.read_devices();
  const Runtime& runtime = Runtime::current();
  explain.placement = options.placement(runtime.placement_policy());
  explain.placement->soft = explain.placement->soft && runtime.soft_placement();
  explain.costs = options.read_costs();
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
  const ExplainOptions explain = explain_options(options);
  const WholeFunction whole = options.step();
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
  add_step_options(*command, *options);
  command->add_option(
      "--devices", options->devices,
      "A file of devices that need not be there (JSON); else those of this machine, "
      "emulated ones (TANDEM_EMULATE) among them");
  command->add_option("--rows", options->rows, "Rows of a table in the text")
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--no-advice", options->no_advice, "Do not simulate what might be better");
  auto* json = command->add_flag("--json", options->json, "Print as JSON, for programs");
  auto* dot = command->add_flag("--dot", options->dot, "Print the graph for Graphviz");
  command->add_option("--html", options->html, "Write a page that shows all of it to this file");
  dot->excludes(json);
  command->callback([options] { run(*options); });
}

}  // namespace tandem::cli
