#pragma once

#include <vector>

#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/ops/variable.h"

namespace tandem::distribute {

/// What a step makes of a variable by itself.
struct ChangeOfVariable {
  Output value = {};  ///< undefined: it only reads it
  bool adds = false;  ///< the difference to the value that the step began with, else the new value
};

/// Makes values of a step's variables: an argument is the value that a variable has in the
/// beginning, what is assigned is what later reads see, and nothing is stored. So a step on a
/// worker needs no variables. Keeps the order that the step had when this was made.
class VariableValues {
 public:
  /// Both must outlive this.
  VariableValues(MutableFunction& f, const OpRegistry& ops);

  /// A new argument, which `variable`'s shape, or that of a part of it, is known of.
  Node* add_argument(const Variable& variable, const PartialShape& shape) const;
  /// Replaces what uses the handle by uses of the argument. Throws InvalidArgumentError for uses
  /// other than reads, lookups of rows and assignments.
  ChangeOfVariable replace(Node* handle, Node* value, const Variable& variable) const;
  /// Nothing waits for the node, or is there for its sake, any more.
  void drop_control_edges(const Node* dropped) const;
  /// Throws InvalidArgumentError if the step changes what the handle refers to.
  void check_is_only_read(const Node* handle) const;

 private:
  std::vector<Node*> users_in_order(const Node* handle) const;
  Output gathered_rows(Output value, const Node* gather) const;
  Output binary(const char* op, Output a, Output b) const;
  bool depends_on(Output value, const Node* argument) const;

  MutableFunction& f_;
  const OpRegistry& ops_;
  std::vector<int> position_;  // of each node, by id, in the order of the step
};

}  // namespace tandem::distribute
