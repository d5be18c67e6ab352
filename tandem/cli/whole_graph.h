#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/cli/model_signature.h"
#include "tandem/core/shape.h"
#include "tandem/graph/function.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_session.h"
#include "tandem/runtime/tensor.h"

namespace tandem::cli {

/// What a step of a graph would be.
struct WholeGraph {
  std::vector<std::string> fetches;  ///< none, and no targets: every output
  std::vector<std::string> targets;
  std::vector<std::string> inits;              ///< nodes to run before, which are no part of it
  std::map<std::string, PartialShape> shapes;  ///< of feeds, by "node" or "node:1"
};

struct WholeFunction {
  FunctionRef function;
  std::shared_ptr<const Graph> graph;  ///< the whole one, as it was read
  std::vector<std::string> feeds;      ///< what the user calls each argument
  std::vector<PartialShape> arg_shapes;
  std::vector<Tensor> captures;  ///< of a signature: its last arguments, which are not fed
  std::vector<io::GraphSession::Step> inits;  ///< each takes what the function takes
};

/// The graph as one function: placeholders (and what `shapes` names) are its arguments. Throws
/// UnimplementedError if nodes cannot run, NotFoundError for names that the graph lacks.
WholeFunction whole_function(io::ImportedGraph imported, const WholeGraph& step = {});

/// A signature of a SavedModel; `step` says shapes of what is fed.
WholeFunction whole_function(const ModelSignature& signature, const WholeGraph& step);

}  // namespace tandem::cli
