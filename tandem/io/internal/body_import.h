#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/internal/attr_proto.h"
#include "tandem/io/proto/messages.h"

namespace tandem {
class Runtime;
}

namespace tandem::io {

/// A gradient that the author of a graph wrote, of a node or of calls of a function: a function of
/// the library. Of a node it takes the gradients of the outputs and then `captures`; of calls it
/// takes the inputs and then the gradients of the outputs.
struct ImportedGradient {
  std::string function;  ///< "": it is not in the file, and taking the gradient is an error
  std::vector<std::string> captures = {};  ///< tensors of the body where the node is: "Exp:0"
  bool takes_inputs = false;
  /// For each input whether the function returns its gradient; empty: it returns all.
  std::vector<bool> gives = {};
};

/// What imports of all bodies of one GraphDef share.
class Library {
 public:
  virtual ~Library() = default;
  /// Null if the library has no function of that name.
  virtual const proto::FunctionDef* find(const std::string& name) const = 0;
  /// The function, imported at first use.
  virtual FunctionRef import(const proto::NameAttrList& name) = 0;
  virtual void add_unsupported(UnsupportedNode node) = 0;
  /// Something that makes the graph unusable; the import goes on, to find the others as well.
  virtual void add_problem(const std::string& message) = 0;
  virtual Runtime& runtime() const = 0;
  virtual const std::string& device() const = 0;
  /// The gradient that a node of `body` names by its attribute `_gradient_op_type`; null if there
  /// is none.
  virtual const ImportedGradient* gradient_of_node(const std::string& op_type,
                                                   const std::string& body) const = 0;
  /// The gradient of calls of a function; null: what follows from its body.
  virtual const ImportedGradient* gradient_of_function(const std::string& name) const = 0;
  /// What is appended to the names by which nodes in functions share resources; "": nothing.
  virtual const std::string& shared_name_suffix() const = 0;
  /// Counts outputs that a number in the file announces; throws when they are out of proportion.
  virtual void count_outputs(std::int64_t outputs) = 0;
};

/// Turns a list of NodeDefs, a graph's or a function's, into a Graph.
class BodyImport {
 public:
  using Nodes = std::vector<proto::NodeDef>;
  using Bindings = std::map<std::string, proto::AttrValue>;

  /// `function` is null for a graph; `bindings` are the attributes that a function is called with.
  /// The values of a graph's constants are given up as they are read: large ones would be there
  /// twice.
  BodyImport(Library& library, Nodes& nodes, const proto::FunctionDef* function,
             const Bindings* bindings);

  /// A result of a function: "node:output:0" or an argument's name.
  struct Result {
    std::string text;
    DType dtype = DType::kInvalid;
  };
  /// All nodes, arguments first.
  Graph run(const std::vector<Result>& results = {});
  // Valid after `run`.
  const std::vector<Node*>& args() const { return args_; }
  const std::vector<Output>& results() const { return results_; }
  Node* node(const std::string& name) const;

 private:
  struct Edge {
    int producer = -1;
    int index = 0;
    bool back = false;  // from a NextIteration to its Merge
  };
  struct Pending {
    proto::NodeDef* def = nullptr;  // null for arguments
    std::string name;
    const OpDef* op = nullptr;  // null: cannot run
    AttrMap attrs;
    std::string reason;   // why it cannot run
    bool broken = false;  // reported as a problem: a stand-in lets the others be looked at
    const proto::FunctionDef* callee = nullptr;
    const ImportedGradient* gradient = nullptr;
    std::size_t num_captures = 0;  // of the gradient, the last inputs
    std::vector<Edge> inputs;
    std::vector<int> controls;
    std::vector<std::string> output_keys;  // of a node that cannot run, as they are met
    std::vector<DType> output_dtypes;      // of a node that cannot run, by their users
    int used_outputs = 0;                  // one more than the last that somebody uses
    std::optional<Shape> repeated_to;      // of a constant that is one value
    Node* made = nullptr;
  };

  static bool stands_in(const Pending& node) { return node.op == nullptr || node.broken; }
  [[noreturn]] void fail(const Pending& node, const std::string& message) const;
  template <class F>
  void or_break(Pending& node, F&& step);
  std::string where(const std::string& name) const;
  const proto::AttrValue* bound(const proto::AttrValue& value) const;
  void add_args();
  void read_nodes();
  void read_name(proto::NodeDef& def);
  void read_op(Pending& node);
  void read_attrs(Pending& node);
  void read_colocation(Pending& node, const proto::AttrValue& value) const;
  void read_constant(Pending& node, const proto::AttrValue& value);
  void read_call(Pending& node);
  void share_by_suffix(Pending& node) const;
  void read_captures(Pending& node);
  void read_inputs(Pending& node);
  std::vector<std::pair<int, int>> resolve(const std::string& text, const std::string& user);
  std::pair<int, int> named_outputs(int producer, const std::string& output) const;
  int num_outputs(const Pending& node, const ArgDef& arg) const;
  int stand_in_output(Pending& node, const std::string& key);
  void read_results(const std::vector<Result>& results);
  void infer_placeholder_dtypes();
  void infer_outputs(Pending& node);
  bool follows_a_broken_one(const Pending& node) const;
  std::vector<int> order() const;
  Output output(const Edge& edge, const std::string& user) const;
  void make(Graph& graph, Pending& node);
  void make_node(Graph& graph, Pending& node);
  void check_functions(const Pending& node, const Graph::NodeSpec& spec) const;
  void make_stand_in(Graph& graph, Pending& node);
  void make_constant(Graph& graph, Pending& node, Graph::NodeSpec spec);
  std::string free_name(const std::string& wanted) const;
  std::string describe_inputs(const Graph::NodeSpec& spec) const;
  void close_loops(Graph& graph);
  void mark(Pending& node);

  Library& library_;
  Nodes& nodes_;
  const proto::FunctionDef* function_;
  const Bindings* bindings_;
  std::vector<Pending> pending_;
  std::map<std::string, int, std::less<>> by_name_;
  std::vector<Node*> args_;
  std::vector<Edge> result_edges_;
  std::vector<Output> results_;
};

/// The dtypes that `count` inputs or outputs of an op have, as far as its attributes say (kInvalid
/// where they do not). `args` are the op's.
std::vector<DType> expected_dtypes(const OpDef& op, const std::vector<ArgDef>& args,
                                   const AttrMap& attrs, std::size_t count);

}  // namespace tandem::io
