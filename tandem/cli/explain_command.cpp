#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tandem/cli/commands.h"
#include "tandem/cli/distribute_library.h"
#include "tandem/cli/for_option.h"
#include "tandem/cli/initializers.h"
#include "tandem/cli/machine_memory.h"
#include "tandem/cli/server_target.h"
#include "tandem/core/error.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

ExplainOptions explain_options(const ExplainArguments& arguments, const ServerTarget& server) {
  ExplainOptions explain;
  explain.advice = !arguments.no_advice;
  if (!arguments.devices.empty()) explain.devices = arguments.read_devices();
  if (!server.address.empty()) {
    if (!arguments.devices.empty() || arguments.measure > 0) {
      throw UsageError(
          "--target grpc://... explains by the devices of the server's cluster: leave --devices "
          "and --measure out with it");
    }
    explain.devices = distribute_library().cluster_devices(server.address, server.security);
  }
  const Runtime& runtime = Runtime::current();
  explain.placement = arguments.placement(runtime.placement_policy());
  explain.placement->soft = explain.placement->soft && runtime.soft_placement();
  explain.costs = arguments.read_costs();
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

// For Graphviz, filled by device; copies are thick and show their bytes.
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

// Zeros for the function's arguments.
std::vector<Array> zeros_for(const WholeFunction& whole) {
  std::vector<Array> values;
  double bytes = 0;
  for (std::size_t i = 0; i < whole.feeds.size(); ++i) {
    const Node& arg = *whole.function->args()[i];
    if (is_object(arg.output_dtype(0)) && arg.output_dtype(0) != DType::kString) {
      throw InvalidArgumentError(cat("--measure: '", whole.feeds[i], "' is a ", arg.output_dtype(0),
                                     ", of which there is none to give."));
    }
    if (!whole.arg_shapes[i].is_fully_known()) {
      throw UsageError(cat("--measure needs the shape of '", whole.feeds[i], "', which is ",
                           whole.arg_shapes[i], ": give --feed ", whole.feeds[i], "=SHAPE."));
    }
    const Shape shape = whole.arg_shapes[i].to_shape();
    bytes += static_cast<double>(shape.num_elements()) *
             static_cast<double>(dtype_size(arg.output_dtype(0)));
    check_fits("--measure: what is fed", bytes, "Give smaller sizes by --feed.");
    values.push_back(Array::zeros(arg.output_dtype(0), shape));
  }
  return values;
}

// Steps of the function, after its initializers.
profiler::Profile measure(const WholeFunction& whole, int steps) {
  const std::vector<Array> values = zeros_for(whole);
  for (const io::GraphSession::Step& init : whole.inits) init.run(values);
  const std::vector<Tensor> args(values.begin(), values.end());
  const ConcreteFunction function(whole.function, whole.captures);
  // Each step leaves one for each node at most, and its own.
  constexpr std::size_t kMaxEvents = 5'000'000;
  const std::size_t events =
      static_cast<std::size_t>(steps) * (whole.function->body().num_nodes() + 1);
  profiler::start({.max_events = std::clamp(events, profiler::Options().max_events, kMaxEvents)});
  try {
    for (int i = 0; i < steps; ++i) {
      for (const Tensor& result : function.call(args)) result.synchronize();
    }
  } catch (...) {
    profiler::stop();
    throw;
  }
  return profiler::stop();
}

}  // namespace

void run_explain(const ExplainArguments& given) {
  ExplainArguments arguments = given;
  const ServerTarget server = take_server(arguments.targets, arguments);
  ExplainOptions explain = explain_options(arguments, server);
  const WholeFunction whole = arguments.step();
  if (arguments.measure > 0) {
    Runtime& runtime = Runtime::current();
    runtime.set_placement_policy(explain.placement->policy);
    runtime.set_soft_placement(explain.placement->soft);
    try {
      explain.profile = measure(whole, arguments.measure);
    } catch (const FailedPreconditionError&) {
      if (!whole.function->stateful() || !arguments.inits.empty() || !whole.graph) throw;
      rethrow_proposing_init("td explain --measure", *whole.graph);
    }
  }
  Explanation explanation = explain_function(*whole.function, whole.arg_shapes, explain);
  explanation.title = arguments.graph.empty() ? arguments.saved_model.folder : arguments.graph;
  if (!arguments.html.empty()) {
    for_option("--html", [&] { explanation.save_html(arguments.html); });
    std::cerr << "td: wrote " << arguments.html << '\n';
  }
  if (arguments.json) {
    std::cout << explanation.to_json();
  } else if (arguments.dot) {
    print_dot(explanation);
  } else if (arguments.html.empty()) {
    std::cout << explanation.to_text(arguments.rows);
  }
}

}  // namespace tandem::cli
