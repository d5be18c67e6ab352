// Places graphs for placements.py: place_graphs FOLDER/CASE.json… prints a line of JSON for each:
// the device of every node, or the error.

#include <exception>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"
#include "tandem/io/graph_def.h"
#include "tandem/placement/placement.h"
#include "tandem/tandem.h"

namespace {

namespace td = tandem;
using nlohmann::json;

td::DeviceSet cpus(int count) {
  td::DeviceSet set;
  for (int i = 0; i < count; ++i) {
    td::DeviceModel device;
    device.spec = td::DeviceSpec::parse(td::cat("/job:localhost/replica:0/task:0/device:CPU:", i));
    device.host_memory = true;
    set.devices.push_back(std::move(device));
  }
  return set;
}

json place(const std::string& path) {
  const json wanted = json::parse(td::fs::read_file(path));
  const auto imported =
      td::io::read_graph_def(wanted.at("graph").get<std::string>(), {.allow_unsupported = true});
  const td::Graph& graph = *imported.graph;
  const td::DeviceSet devices = cpus(wanted.at("cpus").get<int>());
  td::PlacementOptions options;
  options.soft = wanted.at("soft").get<bool>();
  options.default_device = wanted.value("default", "");
  const json fixed = wanted.contains("fixed") ? wanted["fixed"] : json::object();
  for (const auto& [name, device] : fixed.items()) {
    const td::Node* node = graph.find(name);
    if (!node) throw td::NotFoundError(td::cat("no node '", name, "'"));
    options.fixed.emplace_back(node, devices.find(device.get<std::string>()));
  }
  json result;
  try {
    const td::Placement placement =
        td::place(graph, td::CostModel(devices), td::KernelRegistry(), options);
    for (const auto& node : graph.nodes()) {
      const td::DeviceSpec& spec =
          devices.devices[static_cast<std::size_t>(placement.device(*node))].spec;
      result["devices"][node->name()] = td::cat(*spec.type, ":", *spec.index);
    }
  } catch (const td::InvalidArgumentError& error) {
    result["error"] = error.what();
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    json result;
    try {
      result = place(argv[i]);
    } catch (const std::exception& error) {
      result["failed"] = error.what();
    }
    std::cout << result.dump() << "\n";
  }
  return 0;
}
