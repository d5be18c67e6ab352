#pragma once

#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/runtime/traced_function.h"
#include "tandem/saved_model/module.h"

namespace tandem::cli {

/// Which function of which SavedModel a command runs.
struct SavedModelArguments {
  std::string folder;             ///< empty: a graph instead
  std::vector<std::string> tags;  ///< empty: the only graph, or the one tagged "serve"
  std::string signature = "serving_default";
};

/// A signature of a SavedModel, and which of its results are wanted.
class ModelSignature {
 public:
  /// `fetches` are names of results; none: all. Throws NotFoundError for a signature or result that
  /// is not there.
  ModelSignature(const SavedModelArguments& arguments, const std::vector<std::string>& fetches);

  const std::vector<saved_model::TensorSpec>& inputs() const { return signature_.inputs(); }
  const std::vector<std::string>& fetches() const { return fetches_; }
  /// One step: values of the fetches. `feeds` are names, `values` as many.
  std::vector<Array> run(const std::vector<std::string>& feeds,
                         const std::vector<Array>& values) const;
  /// What a step runs: it takes the inputs, then what it captured, and returns the fetches.
  ConcreteFunction function() const;
  /// Nodes of a step, those of called functions in place of the calls; 0 where it is no function.
  int num_nodes() const;

 private:
  saved_model::Module model_;
  saved_model::Signature signature_;
  std::vector<std::string> fetches_;
};

}  // namespace tandem::cli
