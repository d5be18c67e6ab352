#include "tandem/keras/logs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "tandem/core/error.h"
#include "tandem/keras/internal/names.h"

namespace tandem::keras {
namespace {

template <class Entries>
auto find_in(Entries& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& e) { return e.first == name; });
}

template <class Entries>
[[noreturn]] void throw_unknown(const Entries& entries,
                                const std::vector<std::string>& unmaterialized,
                                std::string_view name) {
  if (std::find(unmaterialized.begin(), unmaterialized.end(), name) != unmaterialized.end()) {
    throw FailedPreconditionError(
        cat("'", name,
            "' was not computed: the device only takes the time that computing would "
            "(compute=timed). Emulate with compute=real to read values."));
  }
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.first);
  throw NotFoundError(
      cat("There is no '", name, "' among the logs, which have: ", internal::join(names), "."));
}

}  // namespace

std::optional<double> Logs::find(std::string_view name) const {
  const auto found = find_in(entries_, name);
  return found == entries_.end() ? std::nullopt : std::optional<double>(found->second);
}

double Logs::operator[](std::string_view name) const {
  const auto value = find(name);
  if (!value) throw_unknown(entries_, unmaterialized_, name);
  return *value;
}

void Logs::set(const std::string& name, double value) {
  const auto found = find_in(entries_, name);
  if (found == entries_.end()) {
    entries_.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

std::string Logs::to_string() const {
  std::string text;
  for (const auto& [name, value] : entries_) {
    char number[32];
    std::snprintf(number, sizeof(number), std::abs(value) > 1e-3 ? "%.4f" : "%.4e", value);
    text += (text.empty() ? "" : " - ") + name + ": " + number;
  }
  for (const std::string& name : unmaterialized_)
    text += (text.empty() ? "" : " - ") + name + ": not computed";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Logs& logs) { return out << logs.to_string(); }

const std::vector<double>& History::operator[](std::string_view name) const {
  const auto found = find_in(entries_, name);
  if (found == entries_.end()) throw_unknown(entries_, unmaterialized_, name);
  return found->second;
}

bool History::contains(std::string_view name) const {
  return find_in(entries_, name) != entries_.end();
}

void History::append(int epoch, const Logs& logs) {
  epochs_.push_back(epoch);
  unmaterialized_ = logs.unmaterialized();
  for (const auto& [name, value] : logs.entries()) {
    const auto found = find_in(entries_, name);
    if (found == entries_.end()) {
      entries_.emplace_back(name, std::vector<double>{value});
    } else {
      found->second.push_back(value);
    }
  }
}

}  // namespace tandem::keras
