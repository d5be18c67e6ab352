#include "tandem/keras/config.h"

#include <algorithm>
#include <sstream>

#include "tandem/core/error.h"

namespace tandem::keras {
namespace {

auto find(const std::vector<std::pair<std::string, ConfigValue>>& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& e) { return e.first == name; });
}

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
  const auto found = keras::find(entries_, name);
  if (found == entries_.end()) {
    entries_.emplace_back(std::move(name), std::move(value));
  } else {
    entries_[static_cast<std::size_t>(found - entries_.begin())].second = std::move(value);
  }
  return *this;
}

const ConfigValue& Config::at(std::string_view name) const {
  const auto found = keras::find(entries_, name);
  if (found == entries_.end()) {
    throw NotFoundError(cat("There is no argument '", name, "' among ", to_string(), "."));
  }
  return found->second;
}

const ConfigValue* Config::find(std::string_view name) const {
  const auto found = keras::find(entries_, name);
  return found == entries_.end() ? nullptr : &found->second;
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
