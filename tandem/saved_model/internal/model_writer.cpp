#include "tandem/saved_model/internal/model_writer.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/graph/table_resource.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/saved_model/internal/functions.h"
#include "tandem/saved_model/internal/structured_value.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;
using Case = proto::SavedObject::Case;

constexpr const char* kTensorFlow = "2.21.0";  // whose format this is
constexpr const char* kCaptured = "_captured";

Resource* resource_of(const Tensor& handle) {
  const Array& array = handle.array();
  return array.num_elements() == 1 ? array.data<ResourceHandle>()->resource() : nullptr;
}

// TensorFlow's escapes: a point begins what it adds to a path.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '.') {
      text += "..";
    } else if (c == '/') {
      text += ".S";
    } else {
      text += c;
    }
  }
  return text;
}

std::string random_digits() {
  std::random_device source;
  const std::uint64_t high = source(), low = source();
  return cat((high << 32) | low);
}

proto::VersionDef object_version() {
  proto::VersionDef version;
  version.producer = 1;
  version.min_consumer = 1;
  return version;
}

void set_user_object(proto::SavedObject& node, const std::string& identifier) {
  node.which_kind = Case::kUserObject;
  proto::SavedUserObject& user = node.user_object.make();
  user.identifier = identifier;
  user.version.make() = object_version();
}

// Python's declaration of a function's arguments.
Value full_arg_spec(const ArgSpec& args) {
  const auto strings = [](const std::vector<std::string>& names) {
    std::vector<Value> items(names.begin(), names.end());
    return Value::list(std::move(items));
  };
  const auto text = [](const std::string& name) { return name.empty() ? Value() : Value(name); };
  return Value::named_tuple(
      "FullArgSpec",
      {{"args", strings(args.args)},
       {"varargs", text(args.varargs)},
       {"varkw", text(args.varkw)},
       {"defaults", args.defaults.empty() ? Value() : Value::tuple(args.defaults)},
       {"kwonlyargs", strings(args.kwonlyargs)},
       {"kwonlydefaults", args.kwonlydefaults.empty() ? Value() : Value::dict(args.kwonlydefaults)},
       {"annotations", Value::dict({})}});
}

void set_function_spec(proto::FunctionSpec& spec, const ArgSpec& args) {
  spec.fullargspec.make() = encode(full_arg_spec(args));
  spec.input_signature.make() = encode(Value());
}

}  // namespace

ModelWriter::ModelWriter(const Module& module, const SaveOptions& options)
    : options_(options),
      root_(std::make_shared<Object>(*module.impl())),
      original_root_(module.impl().get()),
      meta_(model_.meta_graphs.emplace_back()),
      graph_(meta_.graph_def.make()),
      objects_(meta_.object_graph_def.make()),
      library_(graph_, "__inference_"),
      builder_(graph_),
      uuid_(random_digits()) {
  if (root_->kind != Object::Kind::kModule)
    throw InvalidArgumentError("save takes a module, not a part of one.");
  for (const auto& [name, signature] : options.signatures) root_->signatures[name] = signature;
  for (const auto& [name, signature] : root_->signatures) {
    if (name.empty() || !signature.defined())
      throw InvalidArgumentError(cat("The signature '", name, "' has no name, or is none."));
  }
  model_.saved_model_schema_version = 1;
  proto::MetaGraphDef::MetaInfoDef& info = meta_.meta_info_def.make();
  info.tags = root_->tags;
  if (!options.tags.empty()) info.tags = options.tags;
  if (info.tags.empty()) info.tags = {"serve"};
  info.tensorflow_version = kTensorFlow;
  graph_.versions.make().producer = io::kGraphDefVersion;

  library_.keep_gradients(cat("CustomGradient-", uuid_, "_"));
  collect_captured();
  number_objects();
  const int parts = static_cast<int>(entries_.size());
  objects_.nodes.resize(entries_.size());
  for (int id = 0; id < parts; ++id) write_object(id);
  for (int id = 0; id < parts; ++id) {
    if (entry(id).object->kind == Object::Kind::kTable) write_table(id);
  }
  write_functions();
  write_signatures();
  write_gradients();
  write_graph();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (const auto& [name, child] : entries_[i].children) {
      auto& reference = objects_.nodes[i].children.emplace_back();
      reference.node_id = child;
      reference.local_name = name;
    }
  }
}

// ---- Objects ----

// Variables and tables that functions captured but that are no parts.
void ModelWriter::collect_captured() {
  std::set<const Resource*> known;
  std::vector<std::shared_ptr<Concrete>> functions;
  for_each_object(root_, [&](const std::shared_ptr<Object>& object, const std::string&) {
    if (object->kind == Object::Kind::kVariable)
      known.insert(resource_of(object->variable.handle()));
    if (object->kind == Object::Kind::kTable) known.insert(resource_of(object->tensor));
    if (object->kind != Object::Kind::kFunction) return;
    for (const auto& trace : object->function.impl()) functions.push_back(trace);
  });
  for (const auto& [name, signature] : root_->signatures) functions.push_back(signature.impl());
  auto list = std::make_shared<Object>();
  list->identifier = "trackable_list_wrapper";
  for (const auto& function : functions) {
    for (const Tensor& capture : function->get().captures()) {
      if (capture.dtype() != DType::kResource) continue;
      Resource* resource = resource_of(capture);
      if (!known.insert(resource).second) continue;
      auto part = std::make_shared<Object>();
      if (auto* variable = dynamic_cast<VariableResource*>(resource)) {
        part->kind = Object::Kind::kVariable;
        // The file needs its value and name alone.
        std::unique_lock lock(variable->mutex());
        const Array value = variable->value().clone();
        lock.unlock();
        part->variable = Variable(Tensor(value), {.trainable = capture.impl()->watched,
                                                  .name = variable->name(),
                                                  .shape = variable->shape()});
        captured_.emplace(part.get(), resource);
      } else {
        part->kind = Object::Kind::kTable;
        part->tensor = capture;
      }
      list->children.push_back({cat(list->children.size()), part, {}});
    }
  }
  if (!list->children.empty()) root_->children.push_back({kCaptured, list, {}});
}

int ModelWriter::add_entry(std::shared_ptr<Object> object, const std::string& path) {
  const int id = static_cast<int>(entries_.size());
  if (object) ids_[object.get()] = id;
  entries_.push_back({std::move(object), path, {}});
  return id;
}

void ModelWriter::number_objects() {
  add_entry(root_, "");
  ids_[original_root_] = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::shared_ptr<Object> object = entries_[i].object;
    for (const Object::Child& child : object->children) {
      const std::shared_ptr<Object> part = child.get();
      if (!part) continue;
      const std::string& path = entries_[i].path;
      const auto known = ids_.find(part.get());
      const int id = known != ids_.end()
                         ? known->second
                         : add_entry(part, path.empty() ? escaped(child.name)
                                                        : cat(path, "/", escaped(child.name)));
      entries_[i].children.emplace_back(child.name, id);
    }
  }
}

void ModelWriter::write_object(int id) {
  const Object& object = *entry(id).object;
  proto::SavedObject& out = node(id);
  switch (object.kind) {
    case Object::Kind::kModule: set_user_object(out, object.identifier); break;
    case Object::Kind::kVariable: {
      const auto captured = captured_.find(&object);
      resource_ids_[captured != captured_.end() ? captured->second
                                                : resource_of(object.variable.handle())] = id;
      out.which_kind = Case::kVariable;
      proto::SavedVariable& variable = out.variable.make();
      variable.dtype = static_cast<proto::DataType>(static_cast<int>(object.variable.dtype()));
      io::encode_shape(object.variable.shape(), variable.shape.make());
      variable.trainable = object.variable.trainable();
      variable.name = object.variable.name();
      break;
    }
    case Object::Kind::kFunction: break;  // with all other functions
    case Object::Kind::kTable: resource_ids_[resource_of(object.tensor)] = id; break;
    case Object::Kind::kAsset: {
      tensor_ids_[object.tensor.impl()] = id;
      out.which_kind = Case::kAsset;
      out.asset.make().asset_file_def_index = static_cast<int>(assets_.size());
      const std::string path = object.tensor.item<std::string>();
      assets_.emplace_back(path, asset_file_name(path));
      break;
    }
    case Object::Kind::kConstant:
      tensor_ids_[object.tensor.impl()] = id;
      out.which_kind = Case::kConstant;
      tensors_[id] = builder_.add_constant("Const", object.tensor.array());
      out.constant.make().operation = tensors_[id];
      break;
  }
}

int ModelWriter::id_of_capture(const Tensor& capture) {
  if (capture.dtype() == DType::kResource) {
    const auto known = resource_ids_.find(resource_of(capture));
    if (known != resource_ids_.end()) return known->second;
  } else if (const auto known = tensor_ids_.find(capture.impl()); known != tensor_ids_.end()) {
    return known->second;
  }
  if (capture.dtype() == DType::kResource || capture.dtype() == DType::kVariant) {
    throw UnimplementedError(cat("A function captured a ", capture.dtype(),
                                 " that has no form in a SavedModel. ",
                                 "Variables, tables and other values have one."));
  }
  const int id = add_entry(nullptr, "");
  objects_.nodes.emplace_back();
  constants_.push_back(capture);
  tensor_ids_[capture.impl()] = id;
  tensors_[id] = builder_.add_constant("Const", capture.array());
  node(id).which_kind = Case::kConstant;
  node(id).constant.make().operation = tensors_[id];
  return id;
}

std::string ModelWriter::add_concrete(const Concrete& concrete, const FunctionRef& function,
                                      const std::vector<Tensor>& captures) {
  // A function of the library has one description.
  FunctionRef own = function;
  if (!described_.insert(own.get()).second) {
    std::vector<std::size_t> all(function->results().size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    own = reordered(function, {}, all, function->name());
    described_.insert(own.get());
    kept_.push_back(own);
  }
  const std::string name = library_.add(own);
  proto::SavedConcreteFunction described;
  for (const Tensor& capture : captures) described.bound_inputs.push_back(id_of_capture(capture));
  described.canonicalized_input_signature.make() = encode(concrete.inputs);
  described.output_signature.make() = encode(concrete.outputs);
  objects_.concrete_functions[name] = std::move(described);
  return name;
}

std::string ModelWriter::add_function(const Concrete& concrete) {
  if (const auto known = written_.find(&concrete); known != written_.end()) return known->second;
  const ConcreteFunction& function = concrete.get();
  return written_[&concrete] = add_concrete(concrete, function.function(), function.captures());
}

int ModelWriter::add_function_object(const std::string& function) {
  const int id = add_entry(nullptr, "");
  objects_.nodes.emplace_back();
  node(id).which_kind = Case::kFunction;
  proto::SavedFunction& saved = node(id).function.make();
  saved.concrete_functions.push_back(function);
  set_function_spec(saved.function_spec.make(), {});
  return id;
}

void ModelWriter::write_functions() {
  for (int id = 0; id < static_cast<int>(entries_.size()); ++id) {
    const std::shared_ptr<Object> object = entry(id).object;
    if (!object || object->kind != Object::Kind::kFunction) continue;
    std::vector<std::string> names;
    for (const auto& trace : object->function.impl()) names.push_back(add_function(*trace));
    node(id).which_kind = Case::kFunction;
    proto::SavedFunction& saved = node(id).function.make();
    saved.concrete_functions = std::move(names);
    set_function_spec(saved.function_spec.make(), object->function.arg_spec());
  }
}

// A table is what makes and fills it: its own functions if it was loaded and cannot change, else
// such as give it what it holds now.
void ModelWriter::write_table(int id) {
  const std::shared_ptr<Object> object = entry(id).object;
  const auto* table = dynamic_cast<const TableResource*>(resource_of(object->tensor));
  node(id).which_kind = Case::kResource;
  node(id).resource.make();
  if (!table && !object->create_table) {
    throw UnimplementedError(
        cat("The part '", entry(id).path, "' is a resource that has no form in a SavedModel."));
  }
  std::string create, fill;
  if (object->create_table && (!table || !table->may_change())) {
    create = add_function(*object->create_table);
    if (object->fill_table) fill = add_function(*object->fill_table);
  } else {
    const TableResource::Contents contents = table->contents();
    const Value nothing = Value::tuple({Value::tuple({}), Value::dict({})});
    Concrete created;
    created.inputs = nothing;
    created.outputs = TensorSpec{.dtype = DType::kResource, .shape = PartialShape::scalar()};
    kept_.push_back(table_creator(*table, contents, cat("hash_table_", uuid_, "_", id)));
    create = add_concrete(created, kept_.back(), {});
    Concrete filled;
    filled.inputs = nothing;
    filled.outputs = TensorSpec{.dtype = DType::kInt32, .shape = PartialShape::scalar()};
    kept_.push_back(table_initializer(contents));
    fill = add_concrete(filled, kept_.back(), {object->tensor});
  }
  const int create_id = add_function_object(create);
  entry(id).children.emplace_back("_create_resource", create_id);
  if (fill.empty()) {
    Concrete none;
    none.inputs = Value::tuple({Value::tuple({}), Value::dict({})});
    none.outputs = TensorSpec{.dtype = DType::kInt32, .shape = PartialShape::scalar()};
    kept_.push_back(empty_function("initialize_table"));
    fill = add_concrete(none, kept_.back(), {});
  }
  const int fill_id = add_function_object(fill);
  entry(id).children.emplace_back("_initialize", fill_id);
  Concrete destroyed;
  destroyed.inputs = Value::tuple({Value::tuple({}), Value::dict({})});
  destroyed.outputs = TensorSpec{.dtype = DType::kInt32, .shape = PartialShape::scalar()};
  kept_.push_back(empty_function("destroy_table"));
  const int destroy_id = add_function_object(add_concrete(destroyed, kept_.back(), {}));
  entry(id).children.emplace_back("_destroy_resource", destroy_id);
  tables_[id] = {create, fill};
}

// The arguments and results of a signature come in the order of their names.
std::string ModelWriter::add_signature(const std::string& name, const Concrete& concrete) {
  const ConcreteFunction& function = concrete.get();
  const auto order = [](const std::vector<TensorSpec>& specs, bool sort) {
    std::vector<std::size_t> places(specs.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    if (sort) {
      std::stable_sort(places.begin(), places.end(),
                       [&](std::size_t a, std::size_t b) { return specs[a].name < specs[b].name; });
    }
    return places;
  };
  const bool by_name = concrete.inputs[0].items().empty();
  const std::vector<std::size_t> inputs = order(concrete.input_specs, by_name);
  std::vector<std::size_t> places(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) places[inputs[i]] = i;
  const bool composites =
      std::any_of(concrete.outputs.items().begin(), concrete.outputs.items().end(),
                  [](const Value& item) { return item.kind() == Value::Kind::kCompositeSpec; });
  kept_.push_back(reordered(function.function(), places, order(concrete.output_specs, !composites),
                            cat("signature_wrapper_", name)));
  return add_concrete(concrete, kept_.back(), function.captures());
}

void ModelWriter::write_signatures() {
  const int map = add_entry(nullptr, "");
  objects_.nodes.emplace_back();
  set_user_object(node(map), "signature_map");
  entry(0).children.emplace_back("signatures", map);
  for (const auto& [name, signature] : root_->signatures) {
    const Concrete& concrete = *signature.impl();
    const std::string function = add_signature(name, concrete);
    signature_functions_[name] = function;
    const int id = add_entry(nullptr, "");
    objects_.nodes.emplace_back();
    node(id).which_kind = Case::kBareConcreteFunction;
    proto::SavedBareConcreteFunction& bare = node(id).bare_concrete_function.make();
    bare.concrete_function_name = function;
    std::vector<std::string> names;
    for (const TensorSpec& spec : concrete.input_specs) names.push_back(spec.name);
    if (concrete.inputs[0].items().empty()) std::sort(names.begin(), names.end());
    bare.argument_keywords = names;
    bare.allowed_positional_arguments = names.size() == 1 ? 1 : 0;
    entry(map).children.emplace_back(name, id);
  }
}

// Gradients may use others, which are appended while these are written.
void ModelWriter::write_gradients() {
  for (std::size_t i = 0; i < library_.gradients().size(); ++i) {
    const io::ExportedGradient gradient = library_.gradients()[i];
    kept_.push_back(gradient_function(gradient));
    const FunctionRef function = kept_.back();
    proto::SavedConcreteFunction described;
    for (const std::string& tensor : gradient.tensors) {
      const int id = add_entry(nullptr, "");
      proto::SavedObject& captured = objects_.nodes.emplace_back();
      captured.which_kind = Case::kCapturedTensor;
      captured.captured_tensor.make().name = tensor;
      captured.captured_tensor.make().concrete_function = gradient.body;
      described.bound_inputs.push_back(id);
    }
    std::vector<Value> inputs{Value()}, outputs;  // the op itself comes first
    const std::size_t grads = gradient.outputs + gradient.inputs;
    for (std::size_t arg = 0; arg < grads; ++arg) {
      const Node& node = *function->args()[arg];
      inputs.emplace_back(TensorSpec{.dtype = node.output_dtype(0), .shape = node.output_shape(0)});
      if (arg < gradient.outputs) outputs.emplace_back();
    }
    for (const DType dtype : function->result_dtypes())
      outputs.emplace_back(TensorSpec{.dtype = dtype, .shape = PartialShape::unknown()});
    described.canonicalized_input_signature.make() =
        encode(Value::tuple({Value::tuple(std::move(inputs)), Value::dict({})}));
    described.output_signature.make() = encode(Value::list(std::move(outputs)));
    const std::string name = library_.add(function);
    objects_.concrete_functions[name] = std::move(described);
    proto::RegisteredGradient registered;
    registered.gradient_func = name;
    registered.registered_op_type = gradient.op_type;
    graph_.library.make().registered_gradients.push_back(std::move(registered));
  }
}

std::string ModelWriter::asset_file_name(const std::string& path) {
  const std::string base = path.substr(path.rfind('/') + 1);
  std::string name = base.empty() ? "asset" : base;
  for (int i = 1; !asset_names_.insert(name).second; ++i) name = cat(base, "_", i);
  return name;
}

}  // namespace tandem::saved_model::internal
