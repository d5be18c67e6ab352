#include "tandem/distribute/internal/master/session_graph.h"

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/graph_message.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {
namespace {

// A request without a job means the master's own task.
std::string completed(const std::string& request, const DeviceSpec& own) {
  if (request.empty()) return request;
  DeviceSpec spec = DeviceSpec::parse(request);
  if (spec.job) return request;
  return spec.merged_into(own).to_string();
}

bool is_state(DType dtype) { return is_ref(dtype) || dtype == DType::kResource; }

// Whether a node may run on another device in each step.
bool is_free(const Node& node) {
  if (node.op().traits.stateful || node.kind() == NodeKind::kVariable) return false;
  for (const Output& in : node.inputs()) {
    if (is_state(in.node->output_dtype(in.index))) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (is_state(node.output_dtype(i))) return false;
  }
  return true;
}

}  // namespace

SessionGraph::SessionGraph(std::string_view graph_def, Runtime& runtime,
                           const ClusterDevices& devices, const Options& options) {
  add(graph_def);
  build(runtime, devices, options);
}

std::shared_ptr<const SessionGraph> SessionGraph::extend(std::string_view graph_def,
                                                         Runtime& runtime,
                                                         const ClusterDevices& devices,
                                                         const Options& options) const {
  auto extended = std::shared_ptr<SessionGraph>(new SessionGraph(*this));
  ++extended->version_;
  extended->add(graph_def);
  extended->build(runtime, devices, options);
  return extended;
}

void SessionGraph::add(std::string_view graph_def) {
  proto::GraphParts parts;
  read_part(graph_def, parts);
  for (const std::string_view bytes : parts.node) {
    proto::NodeName node;
    read_part(bytes, node);
    if (!names_.insert(node.name).second && version_ > 0) {
      throw InvalidArgumentError(cat("GraphDef argument to Extend includes node '", node.name,
                                     "', which was created by a previous call to Create or Extend "
                                     "in this session."));
    }
  }
  // Fields of a message written one after the other are fields of the message.
  proto::GraphParts nodes;
  nodes.node = std::move(parts.node);
  nodes_ += io::proto::WireWriter::write(nodes);
  if (!parts.library.empty()) library_ = parts.library;
  if (!parts.versions.empty()) versions_ = parts.versions;
}

void SessionGraph::build(Runtime& runtime, const ClusterDevices& devices, const Options& options) {
  proto::VersionNumbers versions;
  read_part(versions_, versions);
  if (versions.min_consumer > io::kGraphDefVersion) {
    throw InvalidArgumentError(cat("GraphDef min consumer version ", versions.min_consumer,
                                   " above current version ", io::kGraphDefVersion,
                                   " for TensorFlow 2.21.0.  Please upgrade TensorFlow."));
  }
  proto::GraphParts rest;
  rest.library = library_;
  rest.versions = versions_;
  const io::ImportedGraph imported =
      import_graph(nodes_ + io::proto::WireWriter::write(rest), runtime);
  auto graph = std::make_shared<Graph>(imported.graph->clone());
  const DeviceSpec own = DeviceSpec::parse(devices.own_task());
  for (const auto& node : graph->nodes()) {
    const std::string& request = node->requested_device();
    std::string full = completed(request, own);
    if (full != request) graph->set_requested_device(node.get(), std::move(full));
  }
  PlacementOptions placing;
  placing.soft = options.soft_placement;
  placing.log = options.log_placement;
  placing.default_device = devices.own_task();
  const Placement placement = place(*graph, CostModel(devices.set()), runtime.kernels(), placing);
  // The cost policy places each step by itself; what keeps state stays where it is.
  const bool by_step = runtime.placement_policy() == PlacementPolicy::kCost;
  for (const auto& node : graph->nodes()) {
    if (by_step && is_free(*node)) continue;
    graph->set_requested_device(
        node.get(), devices.devices()[static_cast<std::size_t>(placement.device(*node))].name);
  }
  graph_ = std::move(graph);
}

}  // namespace tandem::distribute
