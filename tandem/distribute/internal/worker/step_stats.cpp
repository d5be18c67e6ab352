#include "tandem/distribute/internal/worker/step_stats.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

// "name = Op(in1, in2)"
std::string label_of(const profiler::Event& event, const Node* node) {
  std::string label = cat(event.name, " = ", event.op, "(");
  if (node) {
    bool first = true;
    for (const Output& in : node->inputs()) {
      if (!in.node) continue;
      label += cat(first ? "" : ", ", in.node->name());
      if (in.index > 0) label += cat(":", in.index);
      first = false;
    }
  }
  return label + ")";
}

proto::NodeExecStats node_stats(const std::string& name, std::int64_t begin_nanos,
                                std::int64_t length_nanos) {
  proto::NodeExecStats stats;
  stats.node_name = name;
  stats.all_start_nanos = stats.scheduled_nanos = begin_nanos;
  stats.all_start_micros = stats.scheduled_micros = begin_nanos / 1000;
  stats.op_end_rel_nanos = stats.all_end_rel_nanos = length_nanos;
  stats.op_end_rel_micros = stats.all_end_rel_micros =
      std::max<std::int64_t>(length_nanos / 1000, 1);
  return stats;
}

}  // namespace

std::int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

proto::StepStats step_stats(const profiler::Profile& profile, const Function& function,
                            std::int64_t started) {
  std::map<std::string, proto::DeviceStepStats> devices;
  for (const profiler::Event& event : profile.events()) {
    if (event.kind != profiler::EventKind::kKernel) continue;
    const std::string& device = profile.tracks()[static_cast<std::size_t>(event.track)].process;
    const auto begin = started * 1000 + std::llround(event.begin * 1e9);
    const auto length = std::llround((event.end - event.begin) * 1e9);
    proto::DeviceStepStats& stats = devices[device];
    if (stats.node_stats.empty()) {  // TensorFlow's lists begin with the graph's source
      proto::NodeExecStats source = node_stats("_SOURCE", begin, 0);
      source.timeline_label = "_SOURCE = NoOp()";
      stats.node_stats.push_back(std::move(source));
    }
    const Node* node = function.body().find(event.name);
    proto::NodeExecStats entry = node_stats(std::string(event.name), begin, length);
    entry.timeline_label = label_of(event, node);
    for (int i = 0; node && i < node->num_outputs(); ++i) {
      proto::NodeOutput output;
      output.slot = i;
      output.tensor_description.make().dtype = static_cast<std::int32_t>(node->output_dtype(i));
      entry.output.push_back(std::move(output));
    }
    stats.node_stats.push_back(std::move(entry));
  }
  proto::StepStats stats;
  for (auto& [name, device] : devices) {
    device.device = name;
    stats.dev_stats.push_back(std::move(device));
  }
  return stats;
}

}  // namespace tandem::distribute
