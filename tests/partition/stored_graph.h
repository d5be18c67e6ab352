#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/passes.h"
#include "tandem/io/graph_session.h"

namespace tandem::partition_test {

/// A graph that is run whole and in parts: a folder with case.json, as tests/conformance exports
/// them.
///
/// It is run as a program of signatures: initializers, once each, then some steps of one signature
/// on the same feeds. Signatures share variables and other resources.
struct StoredGraph {
  std::string name;
  std::vector<Array> feeds;
  /// Ready to be split; initializers take no arguments.
  std::vector<MutableFunction> initializers;
  MutableFunction step;
  /// The same after the optimiser.
  MutableFunction optimized_step;
  /// With the bodies of calls, If, Case and While among its own nodes; none if it has none of them.
  std::optional<MutableFunction> expanded_step;
  int steps = 1;
};

/// Reads a case; its ops belong to the current runtime, which must outlive the result.
StoredGraph read_case(const std::string& folder);

/// The folders below `folder` that hold a case, sorted.
std::vector<std::string> find_cases(const std::string& folder);

}  // namespace tandem::partition_test
