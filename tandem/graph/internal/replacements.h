#pragma once

#include <cstddef>
#include <unordered_map>

#include "tandem/graph/passes.h"

namespace tandem::passes {

/// What a pass replaces while it visits the nodes in topological order. A user's inputs change when
/// the pass comes to it (`resolve_inputs`) and those of all others at the end (`finish`), so that
/// the whole takes time linear in the edges: one of 200,000 inputs of a node is replaced without
/// looking at the others. What is upstream of the visited node is always resolved.
class Replacements {
 public:
  explicit Replacements(MutableFunction& f) : f_(f) {}
  /// Users of `from`, results among them, are to use `to`.
  void add(Output from, Output to);
  /// What stands for `output` now.
  Output resolve(Output output);
  void resolve_inputs(Node* node);
  /// Resolves the inputs of every node, and the results.
  void finish();

 private:
  struct Hash {
    std::size_t operator()(const Output& output) const {
      return static_cast<std::size_t>(output.node->id()) * 0x9e3779b97f4a7c15u +
             static_cast<std::size_t>(output.index);
    }
  };
  MutableFunction& f_;
  std::unordered_map<Output, Output, Hash> by_output_;
};

}  // namespace tandem::passes
