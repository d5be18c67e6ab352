#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/operation_layer.h"
#include "tandem/keras/internal/shared_objects.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/serialization.h"
#include "tandem/keras/serialize.h"

namespace tandem::keras {
namespace {

// Classes of the user's, by their names without the package.
struct Registered {
  std::string registered_name;
  std::function<Layer(const Config&)> make;
};
std::map<std::string, Registered>& registered_layers() {
  static auto& table = *new std::map<std::string, Registered>;  // NOLINT: used until the end
  return table;
}

Config without(const Config& config, std::string_view name) {
  Config rest;
  for (const auto& [key, value] : config.entries()) {
    if (key != name) rest.set(key, value);
  }
  return rest;
}

const std::string* name_in(const Config& config) {
  const ConfigValue* name = config.find("name");
  return name ? std::get_if<std::string>(name) : nullptr;
}

// Where Keras finds a class of its own.
std::string module_of(std::string_view class_name) {
  if (class_name == "Sequential") return "keras";
  if (class_name == "Functional") return "keras.src.models.functional";
  if (class_name == "LayerScale" || class_name == "StochasticDepth")
    return "keras.src.applications.convnext";
  if (class_name == "CustomScaleLayer") return "keras.src.applications.inception_resnet_v2";
  return "keras.layers";
}

}  // namespace

namespace internal {
namespace {

ConfigObject operation_object(const std::string& name, const SavedOperation& saved) {
  ConfigObject object{
      .class_name = saved.class_name, .module = saved.module, .registered_name = saved.class_name};
  object.config.set("name", name);
  for (const auto& [key, value] : saved.config.entries())
    if (key != "name") object.config.set(key, value);
  return object;
}

}  // namespace

thread_local SharedObjects* SharedObjects::current_ = nullptr;

ConfigObject layer_object(const Layer& layer) {
  const std::string& class_name = layer.class_name();
  if (const auto* operation = dynamic_cast<const OperationImpl*>(layer.impl().get());
      operation && operation->saved())
    return operation_object(layer.name(), *operation->saved());
  ConfigObject object{.class_name = class_name, .config = layer.config()};
  if (SharedObjects* shared = SharedObjects::current(SharedObjects::Use::kWrite))
    object.others.set("shared_object_id", shared->number_of(layer.impl().get()));
  const auto own = registered_layers().find(class_name);
  if (own != registered_layers().end()) {
    object.registered_name = own->second.registered_name;
    return object;
  }
  const bool is_operation = dynamic_cast<const OperationImpl*>(layer.impl().get()) != nullptr;
  if (is_operation || !ClassRegistry<Layer>::instance().find(class_name)) {
    object.module = kUnregistered;  // an error where it is written, not where a wrapper notes it
    return object;
  }
  if (class_name == "GroupedQueryAttention") object.class_name = "GroupQueryAttention";
  // Keras' classes of these do not take the arguments that all other layers do.
  if (class_name == "Functional") object.config = without(object.config, "dtype");
  if (class_name == "InputLayer" || class_name == "Discretization" ||
      class_name.starts_with("SpatialDropout"))
    object.config = without(object.config, "trainable");
  object.module = module_of(class_name);
  if (object.module.starts_with("keras.src.")) object.registered_name = class_name;
  return object;
}

namespace {

Layer new_layer_of_object(const ConfigObject& object) {
  const auto own = registered_layers().find(object.class_name);
  if (own != registered_layers().end()) return own->second.make(object.config);
  const std::string* name = name_in(object.config);
  try {
    Layer layer = make_object<Layer>("layer", object);
    const ConfigValue* trainable = object.config.find("trainable");
    const bool* flag = trainable ? std::get_if<bool>(trainable) : nullptr;
    if (flag && !*flag) layer.set_trainable(false);
    return layer;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!name || message.find("'" + *name + "'") != std::string::npos) throw;
    throw_error(error.code(), cat("Layer '", *name, "' (", object.class_name, "): ", message));
  }
}

}  // namespace

Layer layer_of_object(const ConfigObject& object) {
  SharedObjects* shared = SharedObjects::current(SharedObjects::Use::kRead);
  const ConfigValue* value = object.others.find("shared_object_id");
  const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr;
  if (!shared || !number) return new_layer_of_object(object);
  Layer layer = shared->find(*number);
  if (!layer.defined()) {
    layer = new_layer_of_object(object);
    shared->add(*number, layer);
  }
  return layer;
}

}  // namespace internal

Layer layer_from_config(const String& class_name, const Config& config) {
  return internal::layer_of_object({.class_name = class_name, .config = config});
}

void register_layer(const String& package, const String& class_name,
                    std::function<Layer(const Config&)> make) {
  if (internal::ClassRegistry<Layer>::instance().find(class_name)) {
    throw AlreadyExistsError(
        cat("register_layer: ", class_name, " is a class of Keras. Choose another name."));
  }
  registered_layers()[class_name] = {package + ">" + class_name, std::move(make)};
}

namespace utils {

std::string get_registered_name(const std::string& class_name) {
  const auto found = registered_layers().find(class_name);
  return found == registered_layers().end() ? class_name : found->second.registered_name;
}
std::function<Layer(const Config&)> get_registered_object(const std::string& name) {
  for (const auto& [class_name, known] : registered_layers())
    if (known.registered_name == name) return known.make;
  return {};
}
CustomObjects get_custom_objects() {
  CustomObjects objects;
  for (const auto& [class_name, known] : registered_layers()) objects[class_name] = known.make;
  return objects;
}

CustomObjectScope::CustomObjectScope(const CustomObjects& objects) {
  for (const auto& [class_name, make] : objects) {
    const auto known = registered_layers().find(class_name);
    before_[class_name] = known == registered_layers().end() ? nullptr : known->second.make;
    const std::string name = get_registered_name(class_name);
    registered_layers()[class_name] = {name == class_name ? "Custom>" + name : name, make};
  }
}
CustomObjectScope::~CustomObjectScope() {
  for (const auto& [class_name, make] : before_) {
    if (make) {
      registered_layers()[class_name].make = make;
    } else {
      registered_layers().erase(class_name);
    }
  }
}

}  // namespace utils

Model model_from_json(StringView json, const utils::CustomObjects& custom_objects) {
  const utils::CustomObjectScope known(custom_objects);
  const internal::SharedObjects scope(internal::SharedObjects::Use::kRead);
  const Layer layer =
      internal::layer_of_object(internal::object_from_json(json, "the model's JSON"));
  const auto model = std::dynamic_pointer_cast<ModelImpl>(layer.impl());
  if (!model) {
    throw InvalidArgumentError(
        cat("model_from_json: the JSON is that of a layer (", layer.class_name(), "), no model."));
  }
  return Model(model);
}

std::string Model::to_json() const {
  const internal::SharedObjects scope(internal::SharedObjects::Use::kWrite);
  return internal::to_json(internal::layer_object(*this));
}

}  // namespace tandem::keras
