#include "tandem/placement/internal/spec_table.h"

#include "tandem/core/error.h"

namespace tandem::placement {
namespace {

template <class Field>
bool differ(const Field& a, const Field& b) {
  return a && b && a != b;
}

std::string conflict(const char* field, const DeviceSpec& a, const DeviceSpec& b) {
  return cat("Cannot merge devices with incompatible ", field, ": '", a.to_string(), "' and '",
             b.to_string(), "'");
}

}  // namespace

int SpecTable::parse(std::string_view name) {
  if (name.empty()) return 0;
  const auto [entry, added] = by_name_.try_emplace(std::string(name), 0);
  if (!added) return entry->second;
  try {
    entry->second = intern(DeviceSpec::parse(name));
  } catch (...) {
    by_name_.erase(entry);
    throw;
  }
  return entry->second;
}

int SpecTable::intern(const DeviceSpec& spec) {
  if (spec.empty()) return 0;
  // A name without a type may have an index, which it does not print.
  std::string key = spec.to_string();
  if (!spec.type && spec.index) key += cat("#", *spec.index);
  const auto [entry, added] =
      canonical_.try_emplace(std::move(key), static_cast<int>(specs_.size()));
  if (added) specs_.push_back(spec);
  return entry->second;
}

bool SpecTable::compatible(int a, int b) const {
  if (a == b || a == 0 || b == 0) return true;
  const DeviceSpec& x = (*this)[a];
  const DeviceSpec& y = (*this)[b];
  return !differ(x.job, y.job) && !differ(x.replica, y.replica) && !differ(x.task, y.task) &&
         !differ(x.type, y.type) && !differ(x.index, y.index);
}

int SpecTable::merge(int a, int b, bool soft, std::string& problem) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const DeviceSpec& x = (*this)[a];
  const DeviceSpec& y = (*this)[b];
  const char* field = differ(x.job, y.job)           ? "jobs"
                      : differ(x.replica, y.replica) ? "replicas"
                      : differ(x.task, y.task)       ? "tasks"
                      : soft                         ? nullptr
                      : differ(x.type, y.type)       ? "types"
                      : differ(x.index, y.index)     ? "ids"
                                                     : nullptr;
  if (field) {
    problem = conflict(field, x, y);
    return -1;
  }
  DeviceSpec both = x;
  if (!both.job) both.job = y.job;
  if (!both.replica) both.replica = y.replica;
  if (!both.task) both.task = y.task;
  if (differ(x.type, y.type)) {
    both.type.reset();
    both.index.reset();
  } else {
    if (!both.type) both.type = y.type;
    if (differ(x.index, y.index)) {
      both.index.reset();
    } else if (!both.index) {
      both.index = y.index;
    }
  }
  return intern(both);
}

int SpecTable::overlay(int base, int over) {
  if (over == 0 || base == over) return base;
  DeviceSpec result = (*this)[base];
  const DeviceSpec& o = (*this)[over];
  if (o.job) result.job = o.job;
  if (o.replica) result.replica = o.replica;
  if (o.task) result.task = o.task;
  if (o.type) result.type = o.type;
  if (o.index) result.index = o.index;
  return intern(result);
}

}  // namespace tandem::placement
