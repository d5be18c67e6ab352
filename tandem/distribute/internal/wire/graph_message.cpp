#include "tandem/distribute/internal/wire/graph_message.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/graph_export.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

io::ImportedGraph import_graph(std::string_view graph_def, Runtime& runtime) {
  const RuntimeScope scope(runtime);
  io::ImportOptions options;
  options.allow_unsupported = true;
  io::ImportedGraph imported;
  try {
    imported = io::import_graph_def(graph_def, options);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(error.what());
  } catch (const UnimplementedError& error) {  // versions
    throw InvalidArgumentError(error.what());
  }
  if (imported.unsupported.empty()) return imported;
  const io::UnsupportedNode& first = imported.unsupported.front();
  if (!runtime.ops().find(first.op)) {
    throw NotFoundError(
        cat("Op type not registered '", first.op, "' in binary running on ", host_name(),
            ". Make sure the Op and Kernel are registered in the binary running in this process. "
            "Nodes that this build cannot run:",
            io::describe_unsupported(imported.unsupported)));
  }
  throw InvalidArgumentError(cat("This build cannot run all nodes of the graph:",
                                 io::describe_unsupported(imported.unsupported)));
}

std::string export_part(const Function& part) {
  Graph graph = part.body().clone();
  io::ImportedGraph imported;
  imported.graph = std::make_shared<const Graph>(std::move(graph));
  imported.producer = io::kGraphDefVersion;
  imported.min_consumer = 0;
  return io::export_graph_def(imported).bytes;
}

const std::string& host_name() {
  static const std::string name = [] {
    char buffer[256] = {};
    return ::gethostname(buffer, sizeof(buffer) - 1) == 0 ? std::string(buffer)
                                                          : std::string("localhost");
  }();
  return name;
}

}  // namespace tandem::distribute
