// The graph of a SavedModel for TensorFlow 1 and servers: its variables, what restores them, what
// fills its tables, and a call for each signature.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/saved_model/internal/model_writer.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;

constexpr const char* kInit = "__saved_model_init_op";
constexpr const char* kValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

void set_info(proto::TensorInfo& info, const std::string& tensor, const TensorSpec& spec) {
  info.which_encoding = proto::TensorInfo::Case::kName;
  info.name = tensor;
  info.dtype = static_cast<proto::DataType>(static_cast<int>(spec.dtype));
  io::encode_shape(spec.shape, info.tensor_shape.make());
}

}  // namespace

void ModelWriter::write_graph() {
  std::vector<std::string> init;
  // Assets are fed where the tables are filled; later they are read from a variable.
  int asset = 0;
  for (int id = 0; id < static_cast<int>(entries_.size()); ++id) {
    const proto::SavedObject& saved = node(id);
    if (saved.which_kind == proto::SavedObject::Case::kVariable) {
      const Variable& variable = entry(id).object->variable;
      tensors_[id] = builder_.add("VarHandleOp", variable.name(), {},
                                  {{"dtype", variable.dtype()}, {"shape", variable.shape()}});
      // The name in the graph is where it is found.
      proto::AttrValue& shared = graph_.node.back().attr["shared_name"];
      shared.which_value = proto::AttrValue::Case::kS;
      shared.s = tensors_[id];
    } else if (saved.which_kind == proto::SavedObject::Case::kAsset) {
      const std::string fed =
          builder_.add("Placeholder", "asset_path_initializer", {},
                       {{"dtype", DType::kString}, {"shape", PartialShape::scalar()}});
      const std::string variable =
          builder_.add("VarHandleOp", "asset_path", {},
                       {{"dtype", DType::kString}, {"shape", PartialShape::scalar()}});
      proto::AttrValue& shared = graph_.node.back().attr["shared_name"];
      shared.which_value = proto::AttrValue::Case::kS;
      shared.s = variable;
      const std::string assign = builder_.add("AssignVariableOp", variable + "/assign",
                                              {variable, fed}, {{"dtype", DType::kString}});
      tensors_[id] = builder_.add("ReadVariableOp", variable + "/read", {variable},
                                  {{"dtype", DType::kString}});
      asset_inits_[id] = builder_.add("ReadVariableOp", variable + "/read_first",
                                      {variable, "^" + assign}, {{"dtype", DType::kString}});
      init.push_back("^" + assign);
      proto::AssetFileDef& file = meta_.asset_file_def.emplace_back();
      file.filename = assets_[static_cast<std::size_t>(asset++)].second;
      file.tensor_info.make().which_encoding = proto::TensorInfo::Case::kName;
      file.tensor_info.make().name = fed + ":0";
    }
  }
  for (const auto& [id, functions] : tables_) {
    std::vector<std::string> inputs;
    std::vector<DType> dtypes;
    add_captures(functions.first, true, inputs, dtypes);
    tensors_[id] = builder_.add_call("table", functions.first, std::move(inputs), std::move(dtypes),
                                     {DType::kResource});
  }
  for (const auto& [id, functions] : tables_) {
    std::vector<std::string> inputs;
    std::vector<DType> dtypes;
    add_captures(functions.second, true, inputs, dtypes);
    init.push_back("^" + builder_.add_call("fill_table", functions.second, std::move(inputs),
                                           std::move(dtypes), {DType::kInt32}));
  }
  for (const auto& [name, signature] : root_->signatures)
    write_graph_signature(name, *signature.impl());
  const std::string done = builder_.add("NoOp", "init", std::move(init));
  proto::SignatureDef& def = meta_.signature_def[kInit];
  set_info(def.outputs[kInit], done, {});
  proto::CollectionDef& main_op = meta_.collection_def["saved_model_main_op"];
  main_op.which_kind = proto::CollectionDef::Case::kNodeList;
  main_op.node_list.make().value.push_back(done);
  write_saver();
}

void ModelWriter::add_captures(const std::string& function, bool initializes,
                               std::vector<std::string>& inputs, std::vector<DType>& dtypes) {
  for (const int bound : objects_.concrete_functions.at(function).bound_inputs) {
    const auto first = asset_inits_.find(bound);
    const bool is_first = initializes && first != asset_inits_.end();
    inputs.push_back(is_first ? first->second : tensors_.at(bound));
    dtypes.push_back(capture_dtype(bound));
  }
}

DType ModelWriter::capture_dtype(int id) {
  switch (node(id).which_kind) {
    case proto::SavedObject::Case::kVariable:
    case proto::SavedObject::Case::kResource: return DType::kResource;
    case proto::SavedObject::Case::kAsset: return DType::kString;
    default: break;
  }
  if (entry(id).object) return entry(id).object->tensor.dtype();
  for (const Tensor& constant : constants_) {
    const auto known = tensor_ids_.find(constant.impl());
    if (known != tensor_ids_.end() && known->second == id) return constant.dtype();
  }
  throw InternalError(cat("object ", id, " is no capture"));
}

void ModelWriter::write_graph_signature(const std::string& name, const Concrete& concrete) {
  const std::string& function = signature_functions_.at(name);
  const auto sorted = [](std::vector<TensorSpec> specs, bool sort) {
    if (sort) {
      std::stable_sort(specs.begin(), specs.end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; });
    }
    return specs;
  };
  proto::SignatureDef& def = meta_.signature_def[name];
  def.method_name = "tensorflow/serving/predict";
  std::vector<std::string> inputs;
  std::vector<DType> in, out;
  for (const TensorSpec& spec : sorted(concrete.input_specs, concrete.inputs[0].items().empty())) {
    inputs.push_back(builder_.add("Placeholder", cat(name, "_", spec.name), {},
                                  {{"dtype", spec.dtype}, {"shape", spec.shape}}));
    in.push_back(spec.dtype);
    set_info(def.inputs[spec.name], inputs.back() + ":0", spec);
  }
  add_captures(function, false, inputs, in);
  const bool composites =
      std::any_of(concrete.outputs.items().begin(), concrete.outputs.items().end(),
                  [](const Value& item) { return item.kind() == Value::Kind::kCompositeSpec; });
  const std::vector<TensorSpec> results = sorted(concrete.output_specs, !composites);
  for (const TensorSpec& spec : results) out.push_back(spec.dtype);
  const std::string call =
      builder_.add_call("StatefulPartitionedCall", function, std::move(inputs), std::move(in), out);
  std::size_t next = 0;
  if (!composites) {
    for (const TensorSpec& spec : results)
      set_info(def.outputs[spec.name], cat(call, ":", next++), spec);
    return;
  }
  for (std::size_t i = 0; i < concrete.outputs.items().size(); ++i) {
    const Value& item = concrete.outputs.items()[i];
    proto::TensorInfo& info = def.outputs[concrete.outputs.keys().at(i)];
    if (item.kind() != Value::Kind::kCompositeSpec) {
      for (const TensorSpec& spec : item.specs()) set_info(info, cat(call, ":", next++), spec);
      continue;
    }
    info.which_encoding = proto::TensorInfo::Case::kCompositeTensor;
    io::proto::WireReader(item.encoded()).read(info.composite_tensor.make().type_spec.make());
    for (const TensorSpec& spec : item.specs())
      set_info(info.composite_tensor.make().components.emplace_back(), cat(call, ":", next++),
               spec);
  }
}

void ModelWriter::write_saver() {
  const std::string file =
      builder_.add("Placeholder", "saver_filename", {},
                   {{"dtype", DType::kString}, {"shape", PartialShape::scalar()}});
  std::vector<std::string> keys, reads, restored;
  std::vector<DType> dtypes;
  std::vector<int> ids;
  for (int id = 0; id < static_cast<int>(entries_.size()); ++id) {
    if (node(id).which_kind != proto::SavedObject::Case::kVariable) continue;
    const Variable& variable = entry(id).object->variable;
    ids.push_back(id);
    keys.push_back(entry(id).path + kValueSuffix);
    dtypes.push_back(variable.dtype());
    reads.push_back(builder_.add("ReadVariableOp", tensors_[id] + "/Read/ReadVariableOp",
                                 {tensors_[id]}, {{"dtype", variable.dtype()}}));
  }
  std::vector<std::string> saved_after, restored_after;
  if (!ids.empty()) {
    const std::string names = builder_.add_constant("saver/names", Array::vector(keys));
    const std::string slices =
        builder_.add_constant("saver/slices", Array::vector(std::vector<std::string>(keys.size())));
    std::vector<std::string> inputs{file, names, slices};
    inputs.insert(inputs.end(), reads.begin(), reads.end());
    saved_after.push_back(
        "^" + builder_.add("SaveV2", "saver/save", std::move(inputs), {{"dtypes", dtypes}}));
    const std::string values =
        builder_.add("RestoreV2", "saver/restore", {file, names, slices}, {{"dtypes", dtypes}});
    for (std::size_t i = 0; i < ids.size(); ++i) {
      restored_after.push_back(
          "^" + builder_.add("AssignVariableOp", "saver/assign",
                             {tensors_[ids[i]], i == 0 ? values : cat(values, ":", i)},
                             {{"dtype", dtypes[i]}}));
    }
  }
  std::vector<std::string> inputs{file};
  inputs.insert(inputs.end(), saved_after.begin(), saved_after.end());
  proto::SaverDef& saver = meta_.saver_def.make();
  saver.filename_tensor_name = file + ":0";
  saver.save_tensor_name =
      builder_.add("Identity", "saver/saved", std::move(inputs), {{"T", DType::kString}}) + ":0";
  saver.restore_op_name = builder_.add("NoOp", "restore_all", std::move(restored_after));
  saver.version = proto::V2;
}

}  // namespace tandem::saved_model::internal
