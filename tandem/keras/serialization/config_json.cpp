#include <cmath>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/checked_json.h"
#include "tandem/keras/internal/model_config.h"

namespace tandem::keras::internal {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Config& config);
Json object_json(const ConfigObject& object);

struct ValueWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(bool value) const { return value; }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(double value) const {
    if (!std::isfinite(value))
      throw UnimplementedError("a number that is not finite has no form in JSON.");
    return value;
  }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const std::vector<std::int64_t>& value) const { return value; }
  Json operator()(const std::shared_ptr<const ConfigObject>& object) const {
    return object_json(*object);
  }
  Json operator()(const std::shared_ptr<const ConfigList>& list) const {
    Json json = Json::array();
    for (const ConfigValue& value : list->values) json.push_back(std::visit(*this, value));
    return json;
  }
};

Json to_json(const Config& config) {
  Json json = Json::object();
  for (const auto& [name, value] : config.entries()) json[name] = std::visit(ValueWriter(), value);
  return json;
}

Json object_json(const ConfigObject& object) {
  if (object.class_name.empty()) return to_json(object.config);
  if (object.class_name == "custom") {
    throw UnimplementedError(
        "a function of one's own (an activation, initializer, regularizer, or how a "
        "TextVectorization standardizes or splits) has no form in a file. Give it by name or by a "
        "class of tandem::keras.");
  }
  if (object.module == kUnregistered) {
    const ConfigValue* name = object.config.find("name");
    const auto* text = name ? std::get_if<std::string>(name) : nullptr;
    throw UnimplementedError(
        cat("Layer '", text ? *text : "", "' is of the class ", object.class_name,
            ", which files do not know. Register it: td::keras::register_layer. A function of "
            "Keras tensors that Keras does not have is saved as a layer of your own."));
  }
  Json json = Json::object();
  const bool of_keras = !object.module.empty();
  const bool registered = !object.registered_name.empty();
  if (of_keras || registered) json["module"] = of_keras ? Json(object.module) : Json();
  json["class_name"] = object.class_name;
  json["config"] = to_json(object.config);
  if (of_keras || registered)
    json["registered_name"] = registered ? Json(object.registered_name) : Json();
  for (const auto& [name, value] : object.others.entries())
    json[name] = std::visit(ValueWriter(), value);
  return json;
}

ConfigValue value_of(const Json& json);

Config config_of(const Json& json) {
  Config config;
  for (const auto& item : json.items()) config.set(item.key(), value_of(item.value()));
  return config;
}

ConfigObject object_of(const Json& json) {
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  ConfigObject object{.class_name = text("class_name")};
  if (object.class_name.empty()) {
    object.config = config_of(json);
    return object;
  }
  object.module = text("module");
  object.registered_name = text("registered_name");
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    if (name == "class_name" || name == "module" || name == "registered_name") continue;
    if (name == "config" && item.value().is_object()) {
      object.config = config_of(item.value());
    } else {
      object.others.set(name, value_of(item.value()));
    }
  }
  return object;
}

ConfigValue value_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object()) return config_value(object_of(json));
  if (!json.is_array()) return {};
  std::vector<ConfigValue> values;
  bool all_numbers = true;
  for (const Json& entry : json) {
    values.push_back(value_of(entry));
    all_numbers = all_numbers && std::holds_alternative<std::int64_t>(values.back());
  }
  if (!all_numbers) return config_value(std::move(values));
  std::vector<std::int64_t> numbers;
  for (const ConfigValue& value : values) numbers.push_back(std::get<std::int64_t>(value));
  return numbers;
}

}  // namespace

std::string to_json(const ConfigObject& object) {
  try {
    return object_json(object).dump();
  } catch (const Json::exception&) {
    throw InvalidArgumentError("A name in the model is no UTF-8, so it has no form in JSON.");
  }
}

ConfigObject object_from_json(std::string_view json, const std::string& name) {
  const Json parsed = io::parse_checked_json(json, name);
  if (!parsed.is_object()) throw DataLossError(cat(name, " is no JSON object."));
  return object_of(parsed);
}

}  // namespace tandem::keras::internal
