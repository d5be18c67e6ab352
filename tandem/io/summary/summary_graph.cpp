// Graphs: of a traced function, and of what ran between trace_on and trace_export.

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/internal/summary_call.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/profile_export.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/profiler.h"

namespace tandem::summary {
namespace {

constexpr std::size_t kMaxShownConstant = 1024;

// TensorBoard shows small constants; the rest would only make the file large.
void drop_large_constants(std::vector<io::proto::NodeDef>& nodes) {
  for (io::proto::NodeDef& node : nodes) {
    const auto value = node.attr.find("value");
    if (node.op != "Const" || value == node.attr.end()) continue;
    if (io::proto::WireWriter::write(value->second).size() > kMaxShownConstant)
      node.attr.erase(value);
  }
}

io::proto::GraphDef graph_of(const Function& function) {
  io::proto::GraphDef graph;
  io::LibraryExport library(graph);
  std::vector<io::proto::NodeDef> nodes;
  io::BodyExport body(library, nodes, /*in_function=*/false);
  std::vector<const Node*> all;
  for (const Node* node : function.body().topological_order()) all.push_back(node);
  body.plan(all, function.results(), function.control_results());
  body.write();
  drop_large_constants(nodes);
  for (io::proto::FunctionDef& inner : graph.library.make().function)
    drop_large_constants(inner.node_def);
  graph.node = std::move(nodes);
  return graph;
}

struct Tracing {
  TraceOptions options;
  std::unique_ptr<profiler::Recording> recording;
};

// A recording belongs to the thread that makes it, and so does the trace.
Tracing& tracing() {
  thread_local Tracing state;
  return state;
}

}  // namespace

bool graph(const String& graph_def, const Step& step) {
  const SummaryScope::State& state = summary_state();
  if (!state.writer) return false;
  if (is_tracing()) {
    throw FailedPreconditionError(
        "td::summary::graph is not for use inside of a function: call it beside.");
  }
  if (!holds(state.condition)) return false;
  io::PendingEvent event;
  event.kind = io::PendingEvent::Kind::kGraph;
  event.step = step_value(step);
  event.wall_time = io::wall_time_now();
  event.text = graph_def;
  state.writer->writer->add(std::move(event));
  return true;
}

bool graph(const ConcreteFunction& function, const Step& step) {
  return graph(io::proto::WireWriter::write(graph_of(*function.function())), step);
}

void trace_on(const TraceOptions& options) {
  Tracing& state = tracing();
  if (state.recording) {
    return log(LogLevel::kWarning, "td::summary::trace_on: a trace is going on already.");
  }
  if (!options.graph && !options.profiler) return;
  state.options = options;
  state.recording = std::make_unique<profiler::Recording>();
}

void trace_export(StringView name, const Step& step, const String& profiler_outdir) {
  Tracing& state = tracing();
  if (!state.recording) {
    throw FailedPreconditionError(
        "td::summary::trace_export: call td::summary::trace_on before what is to be traced.");
  }
  if (state.options.graph && !summary_state().writer) {
    throw FailedPreconditionError(
        "td::summary::trace_export: the thread has no default writer for the graph.");
  }
  if (state.options.profiler && profiler_outdir.empty()) {
    throw InvalidArgumentError("td::summary::trace_export: a profile needs `profiler_outdir`.");
  }
  const auto recording = std::move(state.recording);
  const profiler::Profile profile = recording->stop();
  if (state.options.profiler) io::write_tensorboard_profile(profiler_outdir, profile);
  if (!state.options.graph) return;
  write(tag_of(name), Tensor(io::to_run_metadata(profile)),
        {.plugin_name = "graph_run_metadata_graph", .content = "1"}, step);
}

void trace_off() { tracing().recording.reset(); }

}  // namespace tandem::summary
