#pragma once

#include <map>
#include <string>

#include "tandem/io/graph_def.h"

namespace tandem::cli {

/// The ops of an imported graph's nodes as the file names them, also of those that cannot run.
class OpNames {
 public:
  explicit OpNames(const io::ImportedGraph& imported);
  const std::string& of(const Node& node) const;
  bool runs(const Node& node) const { return !unsupported_.contains(node.name()); }

 private:
  std::map<std::string, std::string> unsupported_;
};

/// The graph for Graphviz.
std::string to_dot(const io::ImportedGraph& imported);

/// The graph as a page of its own, to look at in a browser: nodes in layers from inputs to outputs;
/// constants are shown with the nodes that use them.
std::string to_html(const io::ImportedGraph& imported, const std::string& title);

}  // namespace tandem::cli
