#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

class FusionTarget;
class OpRegistry;
struct MutableFunction;
struct OptimizerOptions;
namespace passes {
class Replacements;
}

/// How often the outputs of a function's nodes are used: by nodes, as results, and by control
/// edges.
class TANDEM_EXPORT UseCounts {
 public:
  explicit UseCounts(const MutableFunction& f);
  /// Uses of one output.
  int of(Output output) const;
  /// Uses of all outputs, and nodes that wait for this one.
  int of(const Node* node) const;
  /// Nodes that wait for this one.
  int waiting_for(const Node* node) const;
  void added(const Node* node);
  /// Reverts `added`, for a node that nothing uses.
  void removed(const Node* node);
  /// Users of `from` now use `to`; nodes that nothing uses any more count as gone.
  void replaced(Output from, Output to);

 private:
  struct Counts {
    std::vector<int> outputs;
    int control = 0;
    int sum = 0;  ///< of all outputs and `control`
    void add(int output, int count);
    void add_control(int count);
  };
  Counts& counts(const Node* node);
  void release(const Node* node);
  std::vector<Counts> by_id_;
};

/// What an op's RewriteFn (`rewrite` or `fuse`) sees: the node, which has no control inputs, and
/// the means to replace it.
class TANDEM_EXPORT RewriteContext {
 public:
  /// `uses`, kept up to date, is for the fusing of nodes. With `replacements` the caller makes
  /// users of what is replaced use what replaces it. With a `target` nothing is replaced by what
  /// the nodes' device cannot run.
  RewriteContext(Graph& graph, const OpRegistry& ops, Node& node, UseCounts* uses = nullptr,
                 const OptimizerOptions* options = nullptr,
                 passes::Replacements* replacements = nullptr, FusionTarget* target = nullptr)
      : graph_(graph),
        ops_(ops),
        node_(node),
        uses_(uses),
        options_(options),
        replacements_(replacements),
        target_(target) {}
  /// How often things are used; for `fuse` alone.
  const UseCounts& uses() const { return *uses_; }
  /// What is asked for; for `fuse` alone.
  const OptimizerOptions& options() const { return *options_; }
  Graph& graph() { return graph_; }
  const OpRegistry& ops() const { return ops_; }
  Node& node() { return node_; }
  /// Input i's constant value, or null.
  const Array* constant(int i) const;
  /// True if input i is a constant all of whose elements equal `value`.
  bool is_constant(int i, double value) const;
  /// True if input i need not be there any more: no effect, branch or loop comes with it.
  bool may_drop(int i) const;
  /// Adds a node named and placed after this one. Throws like Graph::add.
  Node* add(std::string_view op, std::vector<Output> inputs, AttrMap attrs);
  Output add_constant(const Array& value);
  /// Makes users of output 0 use a constant, which is there when input i would be. False if that
  /// can't be had.
  bool replace_with_constant(const Array& value, int i);
  /// Makes users of an output, the first unless another is named, use `value`. False if the dtypes
  /// or known shapes would differ.
  bool replace_with(Output value, int output = 0);
  /// For `fuse`: makes users of another node's output use `to`, which has its dtype and shape.
  void replace(Output from, Output to);
  /// For `fuse`: notes, for people, why the node that makes `value` does not become one with this
  /// one, as it might.
  void keep_apart(Output value, const char* why) const;
  /// Whether each launch costs time on the node's device (FusionTarget).
  bool launches_cost_time() const;
  /// False where no reasons are asked for.
  bool is_explained() const { return target_ != nullptr; }
  /// True if `replace` or `replace_with` left the graph as it was, since the device on which the
  /// nodes run cannot run what was to stand for them.
  bool refused() const { return refused_; }
  /// What replaced output 0; its node is null if nothing did.
  Output replacement() const { return replacement_; }

 private:
  bool others_are_scalars(Output value) const;
  bool target_accepts(const Node* replaced, const Node* by);

  Graph& graph_;
  const OpRegistry& ops_;
  Node& node_;
  UseCounts* uses_;
  const OptimizerOptions* options_;
  passes::Replacements* replacements_;
  FusionTarget* target_;
  std::vector<Node*> added_;
  bool accepted_ = false, refused_ = false;
  Output replacement_;
};

}  // namespace tandem
