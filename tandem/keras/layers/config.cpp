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
};

}  // namespace

Config& Config::set(std::string name, ConfigValue value) {
  const auto found = find(entries_, name);
  if (found == entries_.end()) {
    entries_.emplace_back(std::move(name), std::move(value));
  } else {
    entries_[static_cast<std::size_t>(found - entries_.begin())].second = std::move(value);
  }
  return *this;
}

const ConfigValue& Config::at(std::string_view name) const {
  const auto found = find(entries_, name);
  if (found == entries_.end()) {
    throw NotFoundError(cat("There is no argument '", name, "' among ", to_string(), "."));
  }
  return found->second;
}

bool Config::contains(std::string_view name) const {
  return find(entries_, name) != entries_.end();
}

std::string Config::to_string() const {
  std::ostringstream out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    out << (i ? ", " : "") << entries_[i].first << '=';
    std::visit(Printer{out}, entries_[i].second);
  }
  return out.str();
}

}  // namespace tandem::keras
