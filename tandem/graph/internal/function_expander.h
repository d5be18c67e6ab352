#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/stack_trace.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/graph/passes.h"

namespace tandem::passes {

inline void add_once(std::vector<Node*>& nodes, Node* node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

/// Makes nodes of a graph out of calls; what inlining and lowering share, and both of them.
class FunctionExpander {
 public:
  struct Kinds {
    bool calls = true;         ///< PartitionedCall and the like
    bool control_flow = true;  ///< If, Case, While
  };
  FunctionExpander(MutableFunction& f, const OpRegistry& ops, const ExpandOptions& options,
                   Kinds kinds);
  bool run();

 private:
  /// A call, with inputs and control inputs in the graph. It may never have been a node of it.
  struct Call {
    const Node* node = nullptr;  ///< op, attributes
    std::string name;
    std::string device;
    std::vector<Output> inputs;
    std::vector<Node*> after;
    bool is_waited_for = false;
  };
  /// What stands for a call.
  struct Expanded {
    std::vector<Output> outputs;
    Node* done = nullptr;  ///< all of it is over then; null if nothing waits for the call
  };
  /// When what is in a body may run.
  struct Start {
    Node* node = nullptr;  ///< null: at any time
    bool sources = false;  ///< nodes without inputs wait for it
    bool effects = false;  ///< stateful nodes that follow from no other one wait for it
    bool readers = false;  ///< nodes that read an argument wait for it
  };
  /// The copy of a function's body.
  struct Body {
    std::vector<Output> results;
    std::vector<bool> after_start;    ///< by result: it follows from what waits for the start
    std::vector<bool> after_effects;  ///< by result: it follows from all effects
    std::vector<Node*> effects;       ///< the last ones: all are over when these are
    bool writes = false;              ///< an effect is more than reading
  };

  bool chosen(const Node& node, const std::string& device) const;
  Expanded expand(const Call& call);
  Expanded inline_call(const Call& call);
  Expanded lower_if(const Call& call);
  Expanded lower_case(const Call& call);
  Expanded lower_while(const Call& call);
  /// One alternative of an If or Case.
  struct Branch {
    Node* pivot = nullptr;  ///< alive where the branch is taken
    Body body;
  };
  /// Copies `function` where output `side` of a Switch by `pred` is alive. `switches` are those of
  /// the arguments, null where there is none yet.
  Branch copy_branch(const Call& call, const FunctionRef& function, const std::string& name,
                     Node* pivot_switch, Output pred, int side, std::vector<Node*>& switches);
  /// A Merge for each result.
  Expanded join(const Call& call, std::vector<Branch> branches);
  Body copy_body(const Call& call, const FunctionRef& function, const std::string& prefix,
                 const std::vector<Output>& args, const Start& start);

  Node* add(const Call& call, const char* op, const std::string& name, std::vector<Output> inputs,
            AttrMap attrs = {}, std::vector<Node*> after = {});
  Node* add_constant(const Call& call, const std::string& name, const Array& value, Node* after);
  Node* add_copy(Graph::NodeSpec spec, const Node& original);
  /// A scalar bool.
  Output as_condition(const Call& call, const std::string& name, Output value);
  /// `value` once `after` has run.
  Output guarded(const Call& call, std::size_t i, Output value, Node* after);
  bool has_to_be_awaited(const Output& value) const;
  /// The node to wait for where `value` is: dead if the value is.
  Node* arrival(const Call& call, const Output& value);
  /// One of the nodes, or a NoOp that waits for all.
  Node* when_over(const Call& call, const std::string& name, const std::vector<Node*>& nodes);
  std::string device_within(const std::string& inner, const std::string& caller);
  std::string unused_frame(const std::string& wanted);
  void check_growth(const Call& call, const Function& function, std::size_t nodes) const;
  void enter_function(const Call& call, const Function& function);

  MutableFunction& f_;
  const OpRegistry& ops_;
  const ExpandOptions& options_;
  const Kinds kinds_;
  const bool held_control_flow_;
  bool in_flow_;                         // what is made now lies in a branch or loop
  std::vector<const Function*> within_;  // the functions that are being expanded
  std::vector<Node*> stand_ins_;
  std::set<std::string> frames_;
  std::map<std::pair<const Node*, int>, Node*> arrivals_;
  std::map<std::pair<std::string, std::string>, std::string> devices_;
};

}  // namespace tandem::passes
