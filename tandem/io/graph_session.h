#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/graph/function.h"
#include "tandem/io/graph_def.h"

namespace tandem {
class NodeStates;  // tandem/graph/node_states.h
class Runtime;
class Session;
}  // namespace tandem

namespace tandem::io {

/// Runs an imported graph as a session of TensorFlow 1 would: any tensor may be fed, any fetched,
/// and only what the fetches and targets need runs. Tensors are named "node" or "node:1".
///
///     td::io::GraphSession session(td::io::read_graph_def("model.pb"));
///     auto y = session.run({{"x", x}}, {"logits"});
///
/// Variables, tables and queues live in a td::Session in the Runtime that was current when the
/// session was made, and so outlive a step. Sessions of one Runtime share them by name, unless
/// `isolate_state` gives this one its own. Steps run in that Runtime whichever is current where
/// they are called; once it was destroyed they throw FailedPreconditionError. Thread-safe.
class TANDEM_EXPORT GraphSession {
 public:
  struct Options {
    bool isolate_state = false;      ///< variables, tables and queues of its own
    std::size_t max_prepared = 256;  ///< steps kept ready, those used last; at least 1
  };
  explicit GraphSession(ImportedGraph graph);
  GraphSession(ImportedGraph graph, const Options& options);
  ~GraphSession();
  /// A moved-from object throws FailedPreconditionError when it is used.
  GraphSession(GraphSession&&) noexcept;
  GraphSession& operator=(GraphSession&&) noexcept;

  /// The graph with what it was extended by; good until it is extended again.
  const ImportedGraph& imported() const;

  /// Adds nodes and functions, as TensorFlow's Session::Extend does: a serialized GraphDef whose
  /// nodes may take outputs of nodes that are there already. State and prepared steps stay. Throws
  /// InvalidArgumentError, and changes nothing, if a node of that name is there or an input is not;
  /// else as import_graph_def.
  void extend(std::string_view graph_def, GraphFormat format = GraphFormat::kBinary);
  /// The session that holds the variables, tables and queues.
  const Session& session() const;

  struct Feed {
    std::string name;
    Array value;
  };
  /// One step: the values of the fetches. Throws NotFoundError for names that the graph lacks,
  /// InvalidArgumentError for feeds of the wrong dtype or shape and for placeholders that are
  /// needed but not fed, and UnimplementedError, before anything runs, if a needed node cannot run.
  std::vector<Array> run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets = {}) const;

  struct RunOptions {
    /// The step ends with DeadlineExceededError after so long, naming what had not ended; it has to
    /// be greater than zero (InvalidArgumentError). None: it may take any time.
    std::optional<std::chrono::nanoseconds> timeout = {};
  };

  /// A step made ready: the part of the graph that it needs, as a function of the feeds.
  class TANDEM_EXPORT Step {
   public:
    /// Like GraphSession::run; `feeds` in the order of the names that the step was made for. Throws
    /// FailedPreconditionError if no session made it.
    std::vector<Array> run(const std::vector<Array>& feeds) const;
    std::vector<Array> run(const std::vector<Array>& feeds, const RunOptions& options) const;
    /// Nodes that the step needs, feeds not counted, before any optimisation.
    int num_nodes() const { return num_nodes_; }
    const FunctionRef& function() const { return function_; }

   private:
    friend class GraphSession;
    std::vector<std::string> feed_names_;
    FunctionRef function_;
    std::shared_ptr<Runtime> runtime_;
    std::shared_ptr<NodeStates> states_;
    int num_nodes_ = 0;
  };
  /// Made once for each set of names, as long as it is among those used last
  /// (`Options::max_prepared`); a Step that is held stays good. Throws as run does.
  Step prepare(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
               const std::vector<std::string>& targets = {}) const;
  /// How many steps are kept ready.
  std::size_t num_prepared() const;

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::io
