#include "tandem/keras/config.h"

#include <sstream>

#include "tandem/core/error.h"

namespace tandem::keras {
namespace {

struct Printer {
  std::ostream& out;
  void operator()(std::monostate) const { out << "none"; }
  void operator()(bool value) const { out << (value ? "true" : "false"); }
  void operator()(std::int64_t value) const { out << value; }
  void operator()(double value) const { out << value; }
  void operator()(const std::string& value) const { out << '\'' << value << '\''; }
  void operator()(const std::vector<std::int64_t>& values) const {
    out << '(';
    for (std::size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
    out << ')';
  }
  void operator()(const std::shared_ptr<const ConfigObject>& object) const {
    out << '\'' << object->class_name << '\'';
  }
  void operator()(const std::shared_ptr<const ConfigList>& list) const {
    out << '[';
    for (std::size_t i = 0; i < list->values.size(); ++i) {
      if (i > 0) out << ", ";
      std::visit(*this, list->values[i]);
    }
    out << ']';
  }
};

}  // namespace

Config& Config::set(std::string name, ConfigValue value) {
  const auto [place, is_new] = places_.try_emplace(name, entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(name), std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
  return *this;
}

const ConfigValue& Config::at(std::string_view name) const {
  const ConfigValue* found = find(name);
  if (found == nullptr)
    throw NotFoundError(cat("There is no argument '", name, "' among ", to_string(), "."));
  return *found;
}

const ConfigValue* Config::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second].second;
}

bool Config::contains(std::string_view name) const { return find(name) != nullptr; }

std::string Config::to_string() const {
  std::ostringstream out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    out << (i ? ", " : "") << entries_[i].first << '=';
    std::visit(Printer{out}, entries_[i].second);
  }
  return out.str();
}

ConfigValue config_value(ConfigObject object) {
  return std::make_shared<const ConfigObject>(std::move(object));
}

ConfigValue config_value(std::vector<ConfigValue> values) {
  return std::make_shared<const ConfigList>(ConfigList{std::move(values)});
}

}  // namespace tandem::keras
