#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem::distribute {

/// What a step feeds, fetches and runs besides, by name: "x:0" for tensors.
struct StepSignature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  /// Tensors that take the place of others: (from, to).
  std::vector<std::pair<std::string, std::string>> connections = {};
  bool partial = false;  ///< fed and fetched in several calls
  bool trace = false;    ///< a graph of its own, so that recording costs others nothing

  /// Equal for equal signatures.
  std::string key() const;
};

/// "x" is "x:0"; what has an index stays.
std::string tensor_name(const std::string& text);

}  // namespace tandem::distribute
