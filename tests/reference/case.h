#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/reference/value.h"

namespace reference {

/// An attribute in the form of the records: `type` is the op definition's ("int", "list(type)", …).
struct Attribute {
  std::string type;
  nlohmann::json value;
};

/// One formal input.
struct Input {
  enum class Kind { kValue, kList, kVariable, kReference };
  Kind kind = Kind::kValue;
  std::vector<Value> values;  ///< one, or those of a list; a variable without data was never set
};

/// An op call: what an adapter needs to make it.
struct Call {
  std::string op;
  std::map<std::string, Attribute> attributes;  ///< those that the case writes
  std::map<std::string, Attribute> inferred;    ///< those that follow from the inputs
  std::vector<Input> inputs;

  /// The inputs with lists flattened; variables count as one.
  std::vector<const Value*> flat() const;
};

/// Gradients of a case, and perhaps gradients of those. An empty dtype stands for "none".
struct SecondOrder {
  std::vector<Value> upstream;          ///< one an input
  std::vector<Value> gradients;         ///< one an input
  std::vector<Value> towards_upstream;  ///< one an output
};

/// One stored case; README.md describes what the parts mean.
struct Case {
  std::string family, id, line;
  Call call;
  std::vector<Value> outputs;
  std::optional<std::vector<Value>> variables;  ///< an empty dtype: not set
  std::vector<std::vector<Value>> runs;
  std::string error;
  std::vector<Value> upstream, gradients;
  std::optional<SecondOrder> second;
  nlohmann::json shapes;
  std::vector<std::size_t> ignored;
  bool exact = false, any_code = false, numeric = true, numeric_in_float = false;
  std::optional<double> relative, absolute;
  int ulps = 0;

  bool has_gradients() const { return !gradients.empty(); }
  bool ignores(std::size_t output) const;
  Tolerance tolerance(const std::string& dtype, double factor = 1) const;
};

/// The lines of a gzip file, each a JSON value. Throws std::runtime_error naming the file.
std::vector<nlohmann::json> read_lines(const std::filesystem::path& path);

/// The cases of data/FAMILY.jsonl.gz; throws std::runtime_error where the file is not what its
/// header says.
std::vector<Case> read_cases(const std::filesystem::path& path);

}  // namespace reference
