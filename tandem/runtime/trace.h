#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/function.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

class OpRegistry;

/// A function being traced: op calls of the thread become nodes of its graph.
///
/// Tensors from outside are captured: they become further arguments of the function. Tensors made
/// during the trace become constants. Stateful ops are ordered as in the program: two that use the
/// same resource, or that use none, run one after the other, and all of them run though nothing may
/// depend on them.
class TANDEM_EXPORT Trace {
 public:
  Trace(const OpRegistry& ops, std::string name, Trace* outer);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t id() const { return id_; }
  Trace* outer() const { return outer_; }
  Graph& graph() { return graph_; }
  const OpRegistry& ops() const { return ops_; }

  /// A further argument.
  Tensor add_arg(DType dtype, const PartialShape& shape, const std::string& name);
  /// Adds a node; what dispatch does with a call while this trace is the thread's.
  std::vector<Tensor> add_op(const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs);
  /// This graph's output for a tensor: its own, a constant, or a captured argument.
  Output resolve(const Tensor& tensor);
  Tensor symbol(Output output);
  /// Nodes added from now on go where `node` goes, until the end of it.
  void begin_colocation(const Node& node);
  void end_colocation();

  /// Outside tensors that became arguments, in order; they follow the arguments made by add_arg.
  const std::vector<Tensor>& captures() const { return captures_; }
  /// Ends the trace: a function of all arguments, captured ones last.
  FunctionRef finish(std::span<const Tensor> results, bool may_optimize = true);

 private:
  void order_stateful(Node* node);

  const OpRegistry& ops_;
  std::string name_;
  std::uint64_t id_;
  Trace* outer_;
  Graph graph_;
  std::vector<Node*> args_;
  std::vector<Tensor> captures_;
  std::vector<Node*> capture_args_;
  std::unordered_map<const TensorImpl*, Output> captured_;
  std::vector<Tensor> constants_kept_;  // so that their addresses stay unique while traced
  std::unordered_map<const TensorImpl*, Output> constants_;
  struct Touch {
    Node* last_writer = nullptr;
    std::vector<Node*> readers;
  };
  std::unordered_map<const Node*, Touch> resources_;  // by the node that captures the handle
  struct Colocation {
    std::string name;
    std::string device;  // that its node asks for
  };
  std::vector<Colocation> colocations_;  // outermost first
  Node* last_effect_ = nullptr;          // stateful nodes without a resource
  std::vector<Node*> effects_;
};

/// How often Tensor::dim has returned -1 on this thread, as it does while tracing for sizes that
/// only a run knows: by this count a caller sees that a body may have gone by sizes it did not
/// know.
TANDEM_EXPORT std::uint64_t unknown_dim_queries();

/// Makes `trace` the thread's (null: back to eager calls) for a block.
class TANDEM_EXPORT TraceScope {
 public:
  explicit TraceScope(Trace* trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* saved_;
};

/// The calling thread's context as it is while a function is traced into `trace`: ops go there,
/// device scopes still hold, tapes and name scopes are left outside.
TANDEM_EXPORT ThreadContext tracing_context(Trace& trace);

}  // namespace tandem
