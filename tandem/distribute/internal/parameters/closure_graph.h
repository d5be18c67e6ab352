#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::distribute {

/// A step as a GraphDef that takes the values of variables as further inputs.
struct ClosureGraph {
  std::string graph_def;
  std::vector<std::string> inputs;      ///< tensors to feed
  std::vector<std::string> parameters;  ///< for each variable; empty: the step does not read it
  std::vector<std::string> outputs;     ///< tensors to fetch
  std::vector<std::string> gradients;   ///< for each variable; empty: it has none
  /// For each variable: where the step only looks up rows, the tensor that says which, from the
  /// inputs alone. The parameter is then those rows, and the gradient theirs. Else empty.
  std::vector<std::string> indices;
  /// For each variable: what the step makes of it besides, if anything.
  struct Change {
    std::string tensor = {};  ///< empty: nothing
    bool adds = false;        ///< it is the difference to the parameter, else the new value
  };
  std::vector<Change> changes;
};

/// Traces `body` for inputs like the examples. With `trains` the first result is a loss, whose
/// gradients by the first `num_trainable` of the variables are further results, and so is what the
/// body makes of any of them. Throws InvalidArgumentError if the body changes other variables, or
/// any without `trains`.
ClosureGraph make_closure_graph(
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body,
    const std::vector<Tensor>& examples, const std::vector<Variable>& variables,
    std::size_t num_trainable, bool trains);

}  // namespace tandem::distribute
