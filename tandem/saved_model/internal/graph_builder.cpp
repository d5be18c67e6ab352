#include "tandem/saved_model/internal/graph_builder.h"

#include "tandem/io/internal/attr_proto.h"

namespace tandem::saved_model::internal {

std::string GraphBuilder::add(const char* op, const std::string& name,
                              std::vector<std::string> inputs, const AttrMap& attrs) {
  io::proto::NodeDef node;
  node.name = names_.make(name);
  node.op = op;
  node.input = std::move(inputs);
  for (const auto& [attr, value] : attrs) io::encode_attr(value, {}, node.attr[attr]);
  graph_.node.push_back(std::move(node));
  return graph_.node.back().name;
}

std::string GraphBuilder::add_call(const std::string& name, const std::string& function,
                                   std::vector<std::string> inputs, std::vector<DType> in,
                                   std::vector<DType> out) {
  const std::string made = add("StatefulPartitionedCall", name, std::move(inputs),
                               {{"Tin", std::move(in)}, {"Tout", std::move(out)}});
  io::proto::AttrValue& f = graph_.node.back().attr["f"];
  f.which_value = io::proto::AttrValue::Case::kFunc;
  f.func.make().name = function;
  return made;
}

std::string GraphBuilder::add_constant(const std::string& name, const Array& value) {
  return add("Const", name, {}, {{"dtype", value.dtype()}, {"value", value}});
}

}  // namespace tandem::saved_model::internal
