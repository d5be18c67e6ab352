#include "tandem/keras/utils_config.h"

#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/names.h"

namespace tandem::keras::utils {

Config::Config(std::initializer_list<std::pair<String, ConfigValue>> values) {
  for (const auto& [name, value] : values) values_[name] = value;
}

void Config::require_unfrozen() const {
  if (frozen_)
    throw FailedPreconditionError("The config is frozen and cannot change. Call unfreeze() first.");
}

void Config::set(const String& name, ConfigValue value) {
  require_unfrozen();
  values_[name] = std::move(value);
}

void Config::update(const Config& other) {
  require_unfrozen();
  for (const auto& [name, value] : other.values_) values_[name] = value;
}

ConfigValue Config::pop(const String& name) {
  require_unfrozen();
  ConfigValue value = (*this)[name];
  values_.erase(name);
  return value;
}

const ConfigValue& Config::operator[](const String& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : values_) names.push_back(entry.first);
  throw NotFoundError(cat(internal::no_such("setting", name, names), "."));
}

ConfigValue Config::get(const String& name, ConfigValue value) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::move(value) : found->second;
}

bool Config::contains(const String& name) const { return values_.count(name) > 0; }

std::string Config::to_json() const {
  ConfigObject object;
  for (const auto& [name, value] : values_) object.config.set(name, value);
  return internal::to_json(object);
}

}  // namespace tandem::keras::utils
