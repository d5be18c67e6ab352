#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::saved_model::internal {

/// Writes nodes of a GraphDef one by one.
class GraphBuilder {
 public:
  explicit GraphBuilder(io::proto::GraphDef& graph) : graph_(graph) {}

  /// Adds a node, under this name or one like it; returns the name. Inputs are "node", "node:1" or
  /// "^node".
  std::string add(const char* op, const std::string& name, std::vector<std::string> inputs,
                  const AttrMap& attrs = {});
  /// Adds a call of a function of the library.
  std::string add_call(const std::string& name, const std::string& function,
                       std::vector<std::string> inputs, std::vector<DType> in,
                       std::vector<DType> out);
  std::string add_constant(const std::string& name, const Array& value);

 private:
  io::proto::GraphDef& graph_;
  io::ExportNames names_;
};

}  // namespace tandem::saved_model::internal
