#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::keras {

/// One argument of a layer, optimizer or loss: nothing, a flag, a number, a text or a list of
/// sizes.
using ConfigValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                                 std::vector<std::int64_t>>;

/// How an object was made: its arguments in order, in Keras' names. What `config()` returns.
///
///     td::keras::Dense(10, {.activation = "relu"}).config().to_string();
///     // "name='dense', trainable=true, units=10, activation='relu', use_bias=true, …"
class TANDEM_EXPORT Config {
 public:
  /// Sets or replaces.
  Config& set(std::string name, ConfigValue value);
  /// Throws NotFoundError for an unknown name.
  const ConfigValue& at(std::string_view name) const;
  bool contains(std::string_view name) const;
  const std::vector<std::pair<std::string, ConfigValue>>& entries() const { return entries_; }
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, ConfigValue>> entries_;
};

}  // namespace tandem::keras
