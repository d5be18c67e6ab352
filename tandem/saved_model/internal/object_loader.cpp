#include "tandem/saved_model/internal/object_loader.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/trace.h"
#include "tandem/saved_model/internal/loaded_functions.h"
#include "tandem/saved_model/internal/object.h"
#include "tandem/saved_model/internal/object_values.h"
#include "tandem/saved_model/internal/structured_value.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;
using Case = proto::SavedObject::Case;

class ObjectLoader {
 public:
  ObjectLoader(std::shared_ptr<proto::MetaGraphDef> meta, const ModelFolder& folder)
      : meta_(meta),
        nodes_(meta->object_graph_def->nodes),
        folder_(folder),
        functions_(std::make_shared<LoadedFunctions>(meta, folder.name())) {}

  Module run() {
    check_edges();
    const ObjectValues values(folder_.variables(), *meta_->object_graph_def);
    objects_.resize(nodes_.size());
    for (int i = 0; i < count(); ++i) {
      if (is_part(i)) objects_[at(i)] = make(i, values);
    }
    if (!objects_[0])
      throw InvalidArgumentError(cat("The root of ", folder_.name(), " is no object."));
    link();
    for (int i = 0; i < count(); ++i) {
      if (nodes_[at(i)].which_kind == Case::kResource) make_table(i);
    }
    for (int i = 0; i < count(); ++i) {
      if (nodes_[at(i)].which_kind == Case::kResource) fill_table(i, values);
    }
    add_signatures();
    objects_[0]->tags = meta_->meta_info_def->tags;
    return Module(objects_[0]);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int count() const { return static_cast<int>(nodes_.size()); }

  [[noreturn]] void malformed(const std::string& why) const {
    throw InvalidArgumentError(cat("The object graph of ", folder_.name(), " is malformed: ", why));
  }

  void check_edges() const {
    for (int i = 0; i < count(); ++i) {
      std::set<std::string> names;
      for (const auto& child : nodes_[at(i)].children) {
        if (child.node_id < 0 || child.node_id >= count())
          malformed(cat("object ", i, " has a part '", child.local_name, "' that is object ",
                        child.node_id, " of ", count(), "."));
        if (!names.insert(child.local_name).second)
          malformed(cat("object ", i, " has two parts '", child.local_name, "'."));
      }
    }
  }

  // Concrete functions are reached through functions and signatures.
  bool is_part(int i) const {
    switch (nodes_[at(i)].which_kind) {
      case Case::kUserObject:
      case Case::kVariable:
      case Case::kFunction:
      case Case::kResource:
      case Case::kAsset:
      case Case::kConstant: return true;
      case Case::kBareConcreteFunction:
      case Case::kCapturedTensor: return false;
      case Case::kNone: malformed(cat("object ", i, " is of an unknown kind."));
    }
    return false;
  }

  std::shared_ptr<Object> make(int i, const ObjectValues& values) {
    const proto::SavedObject& node = nodes_[at(i)];
    auto object = std::make_shared<Object>();
    switch (node.which_kind) {
      case Case::kUserObject: object->identifier = node.user_object->identifier; break;
      case Case::kVariable:
        object->kind = Object::Kind::kVariable;
        object->variable = make_variable(i, *node.variable, values);
        functions_->set_value(i, object->variable.handle());
        break;
      case Case::kFunction:
        object->kind = Object::Kind::kFunction;
        object->function = make_function(*node.function);
        break;
      case Case::kResource: object->kind = Object::Kind::kTable; break;
      case Case::kAsset: {
        object->kind = Object::Kind::kAsset;
        const int index = node.asset->asset_file_def_index;
        if (index < 0 || at(index) >= meta_->asset_file_def.size())
          malformed(
              cat("object ", i, " is asset ", index, " of ", meta_->asset_file_def.size(), "."));
        object->tensor = Tensor(folder_.asset(meta_->asset_file_def[at(index)].filename));
        functions_->set_value(i, object->tensor);
        break;
      }
      case Case::kConstant:
        object->kind = Object::Kind::kConstant;
        object->tensor = functions_->value(i);
        break;
      default: break;
    }
    return object;
  }

  Variable make_variable(int i, const proto::SavedVariable& saved,
                         const ObjectValues& values) const {
    const std::string name = saved.name.empty() ? cat("variable_", i) : saved.name;
    const auto dtype = io::dtype_of_number(saved.dtype);
    if (!dtype || *dtype == DType::kResource || *dtype == DType::kVariant) {
      throw UnimplementedError(cat("Variable '", name, "' of ", folder_.name(), " has dtype ",
                                   io::dtype_number_name(saved.dtype), "."));
    }
    const PartialShape shape = io::decode_shape(*saved.shape);
    const std::string key = values.key(i, "VARIABLE_VALUE");
    if (key.empty()) {
      throw NotFoundError(cat("Variable '", name, "' of ", folder_.name(),
                              values.has_files() ? " has no value in its checkpoint."
                                                 : " has no value: the folder has no variables."));
    }
    Array value = values.read(key);
    if (value.dtype() != *dtype || !shape.is_compatible(value.shape())) {
      throw InvalidArgumentError(cat("Variable '", name, "' of ", folder_.name(), " is ", *dtype,
                                     shape, ", but its checkpoint has ", value.dtype(),
                                     value.shape(), " for it (", key, ")."));
    }
    return Variable(Tensor(std::move(value)),
                    {.trainable = saved.trainable, .name = name, .shape = shape});
  }

  // What Python's inspect says of the function.
  ArgSpec make_arg_spec(const proto::FunctionSpec& proto) const {
    ArgSpec spec;
    const Value full = decode(*proto.fullargspec);
    if (full.kind() != Value::Kind::kNamedTuple) return spec;
    const auto strings = [](const Value& list) {
      std::vector<std::string> texts;
      for (const Value& item : list.items()) texts.push_back(item.as_string());
      return texts;
    };
    const auto text = [](const Value& value) { return value.is_none() ? "" : value.as_string(); };
    spec.args = strings(full["args"]);
    spec.varargs = text(full["varargs"]);
    spec.varkw = text(full["varkw"]);
    spec.defaults = full["defaults"].items();
    spec.kwonlyargs = strings(full["kwonlyargs"]);
    const Value& defaults = full["kwonlydefaults"];
    for (std::size_t i = 0; i < defaults.items().size(); ++i)
      spec.kwonlydefaults.emplace(defaults.keys().at(i), defaults.items()[i]);
    if (proto.is_method && !spec.args.empty()) spec.args.erase(spec.args.begin());
    return spec;
  }

  Function make_function(const proto::SavedFunction& saved) {
    std::vector<std::shared_ptr<Concrete>> traces;
    for (const std::string& name : saved.concrete_functions)
      traces.push_back(functions_->concrete(name));
    try {
      return Function(make_arg_spec(*saved.function_spec), std::move(traces));
    } catch (const Error& error) {
      malformed(cat("the arguments of a function cannot be read: ", error.what()));
    }
  }

  // Depth first: an edge to an object that is still open leads back to one that holds this one.
  void link() {
    enum State : char { kNew, kOpen, kDone };
    std::vector<State> states(nodes_.size(), kNew);
    std::vector<std::pair<int, std::size_t>> open;
    for (int root = 0; root < count(); ++root) {
      if (states[at(root)] != kNew || !objects_[at(root)]) continue;
      open.emplace_back(root, 0);
      states[at(root)] = kOpen;
      while (!open.empty()) {
        const int here = open.back().first;
        const auto& children = nodes_[at(here)].children;
        const std::size_t next = open.back().second++;
        if (next == children.size()) {
          states[at(here)] = kDone;
          open.pop_back();
          continue;
        }
        const auto& child = children[next];
        const std::shared_ptr<Object>& part = objects_[at(child.node_id)];
        if (!part || !shows(here, child)) continue;
        Object::Child edge{child.local_name, part, {}};
        if (states[at(child.node_id)] == kOpen) edge = {child.local_name, nullptr, part};
        objects_[at(here)]->children.push_back(std::move(edge));
        if (states[at(child.node_id)] != kNew) continue;
        states[at(child.node_id)] = kOpen;
        open.emplace_back(child.node_id, 0);
      }
    }
  }

  // A table's own functions and a function's traces are no parts that a user sees.
  bool shows(int holder,
             const proto::TrackableObjectGraph::TrackableObject::ObjectReference& child) const {
    const Case kind = nodes_[at(holder)].which_kind;
    if (kind == Case::kFunction) return false;
    if (kind == Case::kResource && nodes_[at(child.node_id)].which_kind == Case::kFunction)
      return false;
    return !(holder == 0 && child.local_name == "signatures");
  }

  // ---- Tables ----

  /// Null if the object has no function of that name.
  std::shared_ptr<Concrete> function_of(int object, const std::string& name) {
    for (const auto& child : nodes_[at(object)].children) {
      if (child.local_name != name) continue;
      const proto::SavedObject& node = nodes_[at(child.node_id)];
      if (node.which_kind == Case::kBareConcreteFunction)
        return functions_->concrete(node.bare_concrete_function->concrete_function_name);
      if (node.which_kind == Case::kFunction && !node.function->concrete_functions.empty())
        return functions_->concrete(node.function->concrete_functions.front());
    }
    return nullptr;
  }

  void make_table(int i) {
    Object& table = *objects_[at(i)];
    table.create_table = function_of(i, "_create_resource");
    table.fill_table = function_of(i, "_initialize");
    if (!table.create_table) malformed(cat("object ", i, " is a resource that nothing makes."));
    const std::vector<Tensor> made = table.create_table->call({});
    if (made.size() != 1 || made[0].dtype() != DType::kResource)
      malformed(cat("what makes the resource ", i, " returns something else."));
    table.tensor = made[0];
    functions_->set_value(i, made[0]);
  }

  void fill_table(int i, const ObjectValues& values) {
    const Object& table = *objects_[at(i)];
    if (table.fill_table) table.fill_table->call({});
    for (const auto& [name, saveable] : nodes_[at(i)].saveable_objects) {
      const std::string key = values.key(i, name);
      if (key.empty()) continue;
      const std::shared_ptr<Concrete> save = concrete_of(saveable.save_function);
      const std::shared_ptr<Concrete> restore = concrete_of(saveable.restore_function);
      // What would be saved says under which names the values are stored.
      const Value stored = pack(save->outputs, save->call({Tensor(key)}));
      std::vector<Tensor> restored;
      for (const Value& part : stored.items())
        restored.emplace_back(values.read(part["name"].tensor().item<std::string>()));
      restore->call(restored);
    }
  }

  std::shared_ptr<Concrete> concrete_of(int object) {
    if (object < 0 || object >= count()) malformed(cat("there is no object ", object, "."));
    const proto::SavedObject& node = nodes_[at(object)];
    if (node.which_kind == Case::kBareConcreteFunction)
      return functions_->concrete(node.bare_concrete_function->concrete_function_name);
    if (node.which_kind == Case::kFunction && !node.function->concrete_functions.empty())
      return functions_->concrete(node.function->concrete_functions.front());
    malformed(cat("object ", object, " is no function."));
  }

  // ---- Signatures ----

  void add_signatures() {
    for (const auto& child : nodes_[0].children) {
      if (child.local_name != "signatures") continue;
      for (const auto& named : nodes_[at(child.node_id)].children)
        objects_[0]->signatures.emplace(named.local_name, Signature(concrete_of(named.node_id)));
    }
  }

  const std::shared_ptr<proto::MetaGraphDef> meta_;
  const std::vector<proto::SavedObject>& nodes_;
  const ModelFolder& folder_;
  const std::shared_ptr<LoadedFunctions> functions_;
  std::vector<std::shared_ptr<Object>> objects_;
};

}  // namespace

Module load_objects(std::shared_ptr<proto::MetaGraphDef> meta, const ModelFolder& folder) {
  // Whatever is being traced or recorded around, the model is made now.
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  return ObjectLoader(std::move(meta), folder).run();
}

}  // namespace tandem::saved_model::internal
