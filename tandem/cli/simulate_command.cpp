#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/graph/passes.h"
#include "tandem/placement/simulator.h"
#include "tandem/runtime/optimized.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

// What a device does in a step.
struct DeviceUse {
  std::string name;
  int nodes = 0;
  double busy = 0, copies_in = 0, copies_out = 0;  // shares of the step
  double peak_bytes = 0;
  double memory_bytes = 0;
};

struct Forecast {
  int nodes = 0;
  int measured = 0;           // nodes whose costs are
  int unknown = 0;            // nodes with outputs of unknown size
  double step = 0, path = 0;  // seconds
  double copied_bytes = 0;
  int copies = 0;
  std::vector<DeviceUse> devices;
};

Forecast forecast(const Graph& graph, const Placement& placement, const CostModel& costs) {
  const TaskGraph tasks = TaskGraph::of(graph, placement, costs);
  const Simulation run = simulate(tasks);
  Forecast result;
  result.nodes = static_cast<int>(graph.num_nodes());
  result.step = run.makespan;
  for (const double path : tasks.remaining_path()) result.path = std::max(result.path, path);
  result.copies = static_cast<int>(tasks.copies.size());
  for (const PlannedCopy& copy : tasks.copies) result.copied_bytes += copy.bytes;
  const DeviceSet& devices = costs.devices();
  for (int d = 0; d < devices.size(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    DeviceUse use;
    use.name = devices.devices[i].name();
    use.busy = run.busy[3 * i];
    use.copies_in = run.busy[3 * i + 1];
    use.copies_out = run.busy[3 * i + 2];
    if (devices.memory_of(d) == d) use.peak_bytes = run.peak_memory[i];
    use.memory_bytes = static_cast<double>(devices.devices[i].memory_bytes);
    result.devices.push_back(std::move(use));
  }
  for (const auto& node : graph.nodes()) {
    ++result.devices[static_cast<std::size_t>(placement.device(*node))].nodes;
    result.measured += costs.measured(*node, placement.device(*node));
    bool open = false;
    for (int i = 0; i < node->num_outputs(); ++i)
      open |= !node->output_shape(i).is_fully_known() && !is_object(node->output_dtype(i));
    result.unknown += open;
  }
  return result;
}

void print_json(const SimulateArguments& arguments, const Forecast& f) {
  Json devices = Json::array();
  for (const DeviceUse& d : f.devices) {
    devices.push_back({{"name", d.name},
                       {"nodes", d.nodes},
                       {"busy_share", d.busy},
                       {"copy_in_share", d.copies_in},
                       {"copy_out_share", d.copies_out},
                       {"peak_bytes", d.peak_bytes},
                       {"memory_bytes", d.memory_bytes}});
  }
  std::cout << Json{{"step_ms", 1e3 * f.step},
                    {"critical_path_ms", 1e3 * f.path},
                    {"policy", arguments.policy_name()},
                    {"nodes", f.nodes},
                    {"copies", f.copies},
                    {"copied_bytes", f.copied_bytes},
                    {"devices", std::move(devices)}}
                   .dump()
            << '\n';
}

// "1.8 MB"; units of 1000.
std::string with_unit(double value, double one, std::initializer_list<const char*> units) {
  double scale = one;
  const char* name = *units.begin();
  for (const char* unit : units) {
    name = unit;
    if (value < 999.95 * scale || unit == *(units.end() - 1)) break;
    scale *= 1e3;
  }
  char text[400];  // any double, without an exponent
  std::snprintf(text, sizeof(text), "%.*f %s", value == 0 ? 0 : 1, value / scale, name);
  return text;
}
std::string bytes_text(double bytes) { return with_unit(bytes, 1, {"B", "KB", "MB", "GB", "TB"}); }
std::string time_text(double seconds) { return with_unit(seconds, 1e-9, {"ns", "us", "ms", "s"}); }

// Devices without work are counted, not listed: there may be a thousand.
void print_text(const SimulateArguments& arguments, const Forecast& f) {
  char line[256];
  const auto counted = [](int n, const char* one, const char* many) {
    return cat(n, ' ', n == 1 ? one : many);
  };
  std::cout << arguments.graph << ": " << counted(f.nodes, "node", "nodes") << " on "
            << counted(static_cast<int>(f.devices.size()), "device", "devices")
            << ", placed by the " << arguments.policy_name() << " policy; costs of " << f.measured
            << " measured, of the others modelled\n"
            << time_text(f.step) << " a step, " << time_text(f.path)
            << " of it on the critical path\n"
            << counted(f.copies, "copy", "copies") << ", " << bytes_text(f.copied_bytes) << '\n';
  if (f.unknown > 0) {
    std::cout
        << counted(f.unknown, "node has an output", "nodes have outputs")
        << " of unknown size, which count with 1 for each unknown dimension: --feed gives the "
           "shapes of inputs; those behind a loop or made of values are known only at run time\n";
  }
  std::size_t width = 6;
  for (const DeviceUse& d : f.devices) width = std::max(width, d.name.size());
  std::snprintf(line, sizeof(line), "%-*s  %7s  %6s  %7s  %8s  %12s\n", static_cast<int>(width),
                "device", "nodes", "busy", "copy in", "copy out", "peak memory");
  std::cout << line;
  int idle = 0;
  for (const DeviceUse& d : f.devices) {
    if (d.nodes == 0 && d.busy == 0 && d.peak_bytes == 0) {
      ++idle;
      continue;
    }
    std::snprintf(
        line, sizeof(line), "%-*s  %7d  %5.1f%%  %6.1f%%  %7.1f%%  %12s%s\n",
        static_cast<int>(width), d.name.c_str(), d.nodes, 100 * d.busy, 100 * d.copies_in,
        100 * d.copies_out, bytes_text(d.peak_bytes).c_str(),
        d.memory_bytes > 0 && d.peak_bytes > d.memory_bytes ? "  more than there is" : "");
    std::cout << line;
  }
  if (idle > 0) std::cout << counted(idle, "device has", "devices have") << " nothing to do\n";
}

// What asks for devices that the file does not have is easily a slip in one of the names.
void report_fallbacks(const Graph& graph, const Placement& placed) {
  int count = 0;
  const Node* first = nullptr;
  for (const auto& node : graph.nodes()) {
    if (placed.of(*node).by != PlacedBy::kSoft) continue;
    if (count++ == 0) first = node.get();
  }
  if (count == 0) return;
  std::cerr << "td: soft placement: " << count
            << (count == 1 ? " node does not run on the device that it asks"
                           : " nodes do not run on the devices that they ask")
            << " for, '" << first->name() << "' (" << first->requested_device()
            << ") for one; td explain says why, --no-soft-placement refuses it\n";
}

}  // namespace

void run_simulate(const SimulateArguments& arguments) {
  const DeviceSet devices = arguments.read_devices();
  const WholeFunction whole = arguments.step();
  MutableFunction f = simplified(*whole.function, whole.arg_shapes);
  const CostModel costs(devices, arguments.read_costs());
  PlacementOptions placement = arguments.placement(PlacementPolicy::kGreedy);
  // What is fed comes from the host.
  for (const Node* arg : f.args) placement.fixed.emplace_back(arg, 0);
  Placement placed = place(f.graph, costs, Runtime::current().kernels(), placement);
  fuse_on_devices(f, placed);
  report_fallbacks(f.graph, placed);
  const Forecast result = forecast(f.graph, placed, costs);
  arguments.json ? print_json(arguments, result) : print_text(arguments, result);
}

}  // namespace tandem::cli
