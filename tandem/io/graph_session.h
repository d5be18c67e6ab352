#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/graph/function.h"
#include "tandem/io/graph_def.h"

namespace tandem {
class Runtime;
}

namespace tandem::io {

/// Runs an imported graph as a session of TensorFlow 1 would: any tensor may be fed, any fetched,
/// and only what the fetches and targets need runs. Tensors are named "node" or "node:1".
///
///     td::io::GraphSession session(td::io::read_graph_def("model.pb"));
///     auto y = session.run({{"x", x}}, {"logits"});
///
/// Variables, tables and queues live in the Runtime that was current when the session was made, and
/// so outlive a step; sessions of one Runtime share them by name. Steps run in it whichever is
/// current where they are called, and it has to be there still. Thread-safe.
class TANDEM_EXPORT GraphSession {
 public:
  explicit GraphSession(ImportedGraph graph);
  ~GraphSession();
  /// A moved-from object throws FailedPreconditionError when it is used.
  GraphSession(GraphSession&&) noexcept;
  GraphSession& operator=(GraphSession&&) noexcept;

  const ImportedGraph& imported() const;

  struct Feed {
    std::string name;
    Array value;
  };
  /// One step: the values of the fetches. Throws NotFoundError for names that the graph lacks,
  /// InvalidArgumentError for feeds of the wrong dtype or shape and for placeholders that are
  /// needed but not fed, and UnimplementedError, before anything runs, if a needed node cannot run.
  std::vector<Array> run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets = {}) const;

  /// A step made ready: the part of the graph that it needs, as a function of the feeds.
  class TANDEM_EXPORT Step {
   public:
    /// Like GraphSession::run; `feeds` in the order of the names that the step was made for. Throws
    /// FailedPreconditionError if no session made it.
    std::vector<Array> run(const std::vector<Array>& feeds) const;
    /// Nodes that the step needs, feeds not counted, before any optimisation.
    int num_nodes() const { return num_nodes_; }
    const FunctionRef& function() const { return function_; }

   private:
    friend class GraphSession;
    std::vector<std::string> feed_names_;
    FunctionRef function_;
    Runtime* runtime_ = nullptr;
    int num_nodes_ = 0;
  };
  /// Made once for each set of names. Throws as run does.
  Step prepare(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
               const std::vector<std::string>& targets = {}) const;

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::io
