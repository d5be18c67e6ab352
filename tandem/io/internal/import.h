#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tandem/graph/function.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/internal/body_import.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// The graph of a message. Its constants lose their values as they are read.
ImportedGraph import_message(proto::GraphDef& def, const ImportOptions& options);

struct LibraryOptions {
  /// What errors call the graph.
  std::string name = "the graph";
  /// Appended to the names by which nodes in functions share resources.
  std::string shared_name_suffix = {};
  /// The gradient of nodes with this `_gradient_op_type` in the body of a function; null for none.
  std::function<const ImportedGradient*(const std::string& op_type, const std::string& body)>
      gradient = {};
};

/// The functions of a GraphDef's library, each imported when it is first asked for, with all that
/// it calls. Keeps the runtime that was current when it was made. Thread-safe.
class FunctionLibrary {
 public:
  /// Throws as import_graph_def for versions and names of functions.
  FunctionLibrary(std::shared_ptr<proto::GraphDef> def, LibraryOptions options);
  ~FunctionLibrary();
  FunctionLibrary(const FunctionLibrary&) = delete;
  FunctionLibrary& operator=(const FunctionLibrary&) = delete;

  /// Null if there is no function of that name.
  const proto::FunctionDef* find(const std::string& name) const;
  /// Throws as import_graph_def, of this function and those that it calls.
  FunctionRef get(const std::string& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::io
