#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/stack_trace.h"
#include "tandem/graph/op_def.h"

namespace tandem {

class Node;
class Graph;

/// One output of a node: what an input refers to.
struct Output {
  Node* node = nullptr;
  int index = 0;
  bool operator==(const Output&) const = default;
};

/// One op in a graph. Owned by its Graph; changed only through it.
class TANDEM_EXPORT Node {
 public:
  /// Unique in its graph, and small: usable as an index below `Graph::id_limit()`.
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpDef& op() const { return *op_; }
  NodeKind kind() const { return op_->traits.kind; }
  /// Complete: defaults and inferred attributes included.
  const AttrMap& attrs() const { return attrs_; }
  /// Throws InternalError when absent or of another type.
  template <class T>
  const T& attr(std::string_view name) const {
    const AttrValue* value = attrs_.find(name);
    const T* typed = value ? value->get_if<T>() : nullptr;
    if (!typed) throw_missing_attr(name);
    return *typed;
  }

  const std::vector<Output>& inputs() const { return inputs_; }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  int num_outputs() const { return static_cast<int>(output_dtypes_.size()); }
  DType output_dtype(int i) const { return output_dtypes_[static_cast<std::size_t>(i)]; }
  const std::vector<DType>& output_dtypes() const { return output_dtypes_; }
  const PartialShape& output_shape(int i) const {
    return output_shapes_[static_cast<std::size_t>(i)];
  }
  /// Device asked for, possibly partial or empty.
  const std::string& requested_device() const { return requested_device_; }
  /// Where in the user's code the node was made; empty for nodes made by passes.
  const StackTrace& where() const { return where_; }
  /// "{{node add}} (AddV2)", and the user's code line if known.
  std::string describe() const;

 private:
  friend class Graph;
  [[noreturn]] void throw_missing_attr(std::string_view name) const;

  int id_ = 0;
  std::string name_;
  const OpDef* op_ = nullptr;
  std::shared_ptr<const OpDef> op_owner_;  // functions outlive the runtime that made them
  AttrMap attrs_;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<DType> output_dtypes_;
  std::vector<PartialShape> output_shapes_;
  std::string requested_device_;
  StackTrace where_;
};

/// Nodes and the edges between them. Nodes stand in the order in which they were added. A cycle may
/// be closed only by a NextIteration that feeds a Merge: such a Merge is added with an undefined
/// input, which set_input fills in later. Not thread-safe.
class TANDEM_EXPORT Graph {
 public:
  Graph() = default;
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;

  struct NodeSpec {
    const OpDef* op = nullptr;
    std::string name;  ///< made unique; empty: the op's name
    std::vector<Output> inputs;
    AttrMap attrs;
    std::vector<Node*> control_inputs;
    std::string device;
    StackTrace where;
  };
  /// Completes and checks attributes, infers dtypes and shapes. Throws InvalidArgumentError that
  /// names the node.
  Node* add(NodeSpec spec);

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::size_t num_nodes() const { return nodes_.size(); }
  /// One more than the largest id.
  int id_limit() const { return next_id_; }
  Node* find(std::string_view name) const;

  void set_input(Node* node, int input, Output value);
  void add_control_input(Node* node, Node* before);
  void set_control_inputs(Node* node, std::vector<Node*> before);
  void set_attr(Node* node, std::string_view name, AttrValue value);
  void set_output_shape(Node* node, int output, PartialShape shape);
  void set_requested_device(Node* node, std::string device);
  /// Makes every user of `from` use `to` (within this graph).
  void replace_uses(Output from, Output to);
  /// Removes the nodes for which `drop` holds; no remaining node may refer to them.
  void remove_if(const std::vector<bool>& drop_by_id);
  /// Infers all output shapes again, after inputs changed.
  void infer_shapes();
  /// Infers the shapes of a graph that is about to run: a node whose inputs cannot fit keeps
  /// unknown shapes, since the error is its kernel's to give.
  void infer_shapes_to_run();

  /// For each node id, the nodes that use one of its outputs or wait for it (each once).
  std::vector<std::vector<Node*>> consumers() const;
  /// Every node after its inputs (loops apart), keeping insertion order where possible. Throws
  /// InvalidArgumentError that names the nodes of any other cycle, or an undefined input.
  std::vector<Node*> topological_order() const;

  /// A deep copy; `mapped`, if given, receives the new node for each old id.
  Graph clone(std::vector<Node*>* mapped = nullptr) const;
  /// Expires with the graph, wherever it is moved: for those who refer to nodes and may outlive it.
  std::weak_ptr<const void> life() const { return life_; }
  /// One line a node: "c: float[2,3] = AddV2(a, b:1) {T=float} ^ctrl".
  std::string to_string() const;

 private:
  std::string unique_name(std::string_view wanted);
  void infer_node(Node& node);
  void note_use(Node* user, const Node* used);
  void note_uses();

  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, Node*> by_name_;
  std::unordered_map<std::string, int> name_counts_;
  int next_id_ = 0;
  /// By id: nodes that may have one of its outputs as an input, and all that have; kept from the
  /// first `replace_uses` on.
  std::vector<std::vector<Node*>> users_;
  bool knows_users_ = false;
  std::shared_ptr<const void> life_ = std::make_shared<char>();
};

}  // namespace tandem
