#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/function.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/optimizer_options.h"

namespace tandem {

class FusionTarget;  // tandem/graph/fusion_target.h
class OpRegistry;

/// Computes values for passes that need them; implemented by runtime.
class TANDEM_EXPORT Evaluator {
 public:
  virtual ~Evaluator();
  /// The outputs of a node for these inputs, or nothing if it cannot be evaluated here.
  virtual std::optional<std::vector<Array>> evaluate(const Node& node,
                                                     std::span<const Array> inputs) = 0;
  /// Whether the node's kernel can be part of a fused op (ElementLoops).
  virtual bool has_float_loops(const Node& node);
};

struct MutableFunction;

/// What passes may go by where a graph is to serve calls whose sizes vary: its shapes leave those
/// sizes open, and nothing that is done to it may depend on them but how much is fused. Implemented
/// by runtime.
class TANDEM_EXPORT SizesOfCalls {
 public:
  virtual ~SizesOfCalls();
  /// Shapes of the arguments with a size in place of each that varies: large primes, so that two
  /// sizes are equal in the graph only if they are in all calls.
  virtual std::vector<PartialShape> stand_ins() const = 0;
  /// The graph that `is_large` will be asked of.
  virtual void look_at(const MutableFunction& function) = 0;
  /// Whether the node's first output is large enough for fusing to pay, in the calls that the graph
  /// is to serve.
  virtual bool is_large(const Node& node) = 0;
};

/// A graph that passes may change, and what of it must keep its meaning.
struct TANDEM_EXPORT MutableFunction {
  Graph graph;
  std::vector<Node*> args;
  std::vector<Output> results;
  std::vector<Node*> control_results;
  /// Where its nodes run, once they are placed: fusing passes ask it. Null: nothing is asked, and
  /// nodes that request different devices are not fused. Not cloned.
  FusionTarget* target = nullptr;

  explicit MutableFunction(const Function& function);
  MutableFunction clone() const;
  /// Makes users of `from`, results among them, use `to`.
  void replace(Output from, Output to);

 private:
  MutableFunction() = default;
  void copy(const Graph& graph, const std::vector<Node*>& args, const std::vector<Output>& results,
            const std::vector<Node*>& control_results);
};

// Each pass returns whether it changed anything. Stateful nodes are never merged, folded or
// dropped.
namespace passes {
/// Drops what no result and no effect needs; arguments stay.
TANDEM_EXPORT bool prune(MutableFunction& f);
/// Replaces nodes all of whose inputs are constant by their value (results of at most 10 MB).
TANDEM_EXPORT bool fold_constants(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator);
/// Keeps one of several equal nodes: same op, inputs, attributes and device.
TANDEM_EXPORT bool eliminate_common_subexpressions(MutableFunction& f);
/// Applies the rewrites that ops declare (x * 1, double transposes, …).
TANDEM_EXPORT bool simplify_arithmetic(MutableFunction& f, const OpRegistry& ops);
/// Drops control edges that others imply, and nodes that only forward a value once others have run.
TANDEM_EXPORT bool simplify_control_edges(MutableFunction& f, const OpRegistry& ops);
/// What constants wait for, those who use them wait for: plans have constants at hand from the
/// start. Not in graphs with TensorFlow 1 control flow, whose constants take part in it.
TANDEM_EXPORT bool propagate_constant_control_inputs(MutableFunction& f);
/// Computes elementwise ops of a broadcast value and scalars before the broadcast, where shapes are
/// known: equal to the bit, with fewer elements to compute and to hold.
TANDEM_EXPORT bool sink_broadcasts(MutableFunction& f, const OpRegistry& ops);
/// Applies the rewrites that make one op of several (a convolution with what follows it, …).
TANDEM_EXPORT bool fuse(MutableFunction& f, const OpRegistry& ops,
                        const OptimizerOptions& options = {});
/// Makes one op of trees of elementwise ops on large values of float or bfloat16. `sizes`, if
/// given, says which are large; else those whose shape says so.
TANDEM_EXPORT bool fuse_elementwise(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                                    SizesOfCalls* sizes = nullptr);
}  // namespace passes

/// Those of the passes that keep values as they are, until nothing changes (at most a few rounds).
/// Returns whether anything changed.
TANDEM_EXPORT bool simplify(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                            const OptimizerOptions& options = {});
/// simplify, then fuse: what needs no shape of an argument.
TANDEM_EXPORT void optimize(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                            const OptimizerOptions& options = {});
/// The fusing passes alone, for a function that has been simplified (and placed).
TANDEM_EXPORT void fuse_ops(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator,
                            const OptimizerOptions& options = {});
/// For a function that has been optimised: all passes once more, for arguments of these shapes.
/// `sizes`, if given: of the calls that shapes known in part stand for.
TANDEM_EXPORT void specialize(MutableFunction& f, const std::vector<PartialShape>& arg_shapes,
                              const OpRegistry& ops, Evaluator& evaluator,
                              const OptimizerOptions& options = {}, SizesOfCalls* sizes = nullptr);

}  // namespace tandem
