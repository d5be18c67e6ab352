#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/config.h"

namespace tandem::keras::utils {

/// Settings of a program by name, which can be frozen against later changes.
///
///     Config config({{"learning_rate", 0.1}, {"optimizer", std::string("adam")}});
///     config.set("seed", std::int64_t{123});
///     config.freeze();                        // from now on, changes are errors
///     std::string text = config.to_json();
///
/// A copy is a Config of its own. Changing a frozen one throws FailedPreconditionError.
class TANDEM_EXPORT Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<String, ConfigValue>> values);

  void set(const String& name, ConfigValue value);
  void update(const Config& other);
  /// Removes and returns a value. Throws NotFoundError if there is none.
  ConfigValue pop(const String& name);
  /// Throws NotFoundError that names a similar one, if there is one.
  const ConfigValue& operator[](const String& name) const;
  /// `value` where there is none of that name.
  ConfigValue get(const String& name, ConfigValue value = {}) const;
  bool contains(const String& name) const;
  std::size_t size() const { return values_.size(); }

  bool frozen() const { return frozen_; }
  void freeze() { frozen_ = true; }
  void unfreeze() { frozen_ = false; }

  /// By name, in the alphabet's order.
  const std::map<std::string, ConfigValue>& as_dict() const { return values_; }
  std::string to_json() const;

 private:
  void require_unfrozen() const;
  std::map<std::string, ConfigValue> values_;
  bool frozen_ = false;
};

}  // namespace tandem::keras::utils
