#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {

std::string node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::vector<std::pair<std::string, std::string>>& attrs) {
  std::string text = "node { name: '" + name + "' op: '" + op + "'";
  for (const std::string& in : inputs) text += " input: '" + in + "'";
  for (const auto& [key, value] : attrs)
    text += " attr { key: '" + key + "' value { " + value + " } }";
  return text + " }\n";
}

std::string placeholder(const std::string& name, const std::string& dims) {
  return node(
      name, "Placeholder", {},
      {{"dtype", kFloatType},
       {"shape", dims.empty() ? "shape { unknown_rank: true }" : "shape { " + dims + " }"}});
}

std::string ints(const std::string& name, const std::vector<int>& values) {
  std::string list;
  for (const int v : values) list += " int_val: " + std::to_string(v);
  return node(name, "Const", {},
              {{"dtype", "type: DT_INT32"},
               {"value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: " +
                             std::to_string(values.size()) + " } }" + list + " }"}});
}

ImportedGraph import_text(const std::string& text, bool allow_unsupported) {
  ImportOptions options;
  options.format = GraphFormat::kText;
  options.allow_unsupported = allow_unsupported;
  return import_graph_def(text, options);
}

}  // namespace tandem::io
