#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/function.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

/// A gradient that a user wrote, as TensorFlow keeps it: in the body of a function a node
/// IdentityN, of the results and then the inputs of a call, names its type.
struct ExportedGradient {
  std::string op_type;
  std::string body;      ///< the function that holds the node
  FunctionRef backward;  ///< of (inputs, outputs, output gradients, captured tensors)
  std::size_t outputs = 0;
  std::size_t inputs = 0;
  // Inputs, outputs and captured tensors.
  std::vector<std::string> tensors;  ///< names in the body: "node:1"
  std::vector<DType> dtypes;
};

/// Writes functions, each once, to a GraphDef's library.
class LibraryExport {
 public:
  /// Names of functions begin with `prefix`: no op must be called alike.
  explicit LibraryExport(proto::GraphDef& graph, std::string prefix = "")
      : graph_(graph), prefix_(std::move(prefix)) {}
  /// The function's name in the library.
  std::string add(const FunctionRef& function);
  /// From now on calls with a gradient of the user's own keep it: types of gradients begin with
  /// `prefix`, and are listed in `gradients`. Else calls are written without.
  void keep_gradients(std::string prefix) { gradient_prefix_ = std::move(prefix); }
  const std::string& gradient_prefix() const { return gradient_prefix_; }
  std::vector<ExportedGradient>& gradients() { return gradients_; }

 private:
  proto::GraphDef& graph_;
  const std::string prefix_;
  std::string gradient_prefix_;
  std::vector<ExportedGradient> gradients_;
  std::map<const Function*, std::string> names_;
  std::set<std::string> taken_;
};

/// Names that TensorFlow takes, each for one thing.
class ExportNames {
 public:
  /// `wanted` with what TensorFlow refuses replaced, made unique.
  std::string make(const std::string& wanted);
  /// Takes the name as it is; InvalidArgumentError if TensorFlow refuses it or it is taken.
  void take(const std::string& name);

 private:
  std::set<std::string> taken_;
};

/// Writes the nodes of a body: first `plan` names those that are written, then `write` writes each.
class BodyExport {
 public:
  /// In a function, values are named by output argument ("node:output:0"), else by number.
  BodyExport(LibraryExport& library, std::vector<proto::NodeDef>& nodes, bool in_function)
      : library_(library), nodes_(nodes), in_function_(in_function) {}

  ExportNames& names() { return names_; }
  /// The function whose body it is.
  void set_function(const std::string& function) { function_ = function; }
  /// What its users call the value of a node that is not written: an argument's name.
  void set_name(const Node& node, const std::string& name);
  /// Before anything is planned: a node that is to have exactly this name.
  void ask(const Node& node, const std::string& name);
  /// Names the nodes, in this order, so that inputs may refer to what is written later (the loops
  /// of TensorFlow 1 go round). Nodes of results and effects are written even if they are a part of
  /// another. Called once.
  void plan(const std::vector<const Node*>& nodes, const std::vector<Output>& results,
            const std::vector<Node*>& control_results);
  /// The planned nodes in their order, without those that are a part of another. For each `other`
  /// is asked whether it has written it: it must itself have pushed the message to the list of
  /// nodes, under `name(node)`, which is what users of the node call it.
  void write(const std::function<bool(const Node&)>& other = {});
  const std::string& name(const Node& node) const { return name_of_.at(&node); }
  /// "node", "node:1" or "node:output:0".
  std::string value(Output output) const;

 private:
  void write_node(const Node& node);
  void write_gradient(const Node& call);
  std::string own_value(Output output) const;
  std::string graph_name(Output output) const;
  void write_constant(const Node& fill, proto::NodeDef& def) const;
  void write_colocation(const std::vector<std::string>& groups, proto::NodeDef& def) const;

  LibraryExport& library_;
  std::vector<proto::NodeDef>& nodes_;
  bool in_function_;
  ExportNames names_;
  std::vector<const Node*> planned_;
  std::map<const Node*, std::string> name_of_;
  std::map<std::string, const Node*> by_own_name_;
  std::map<const Node*, std::string> asked_;
  std::string function_;
  std::map<const Node*, std::string> with_gradient_;  // what users of a call use instead
  std::set<const Node*> arguments_;
};

}  // namespace tandem::io
