#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::keras {

struct ConfigList;
struct ConfigObject;

/// One argument of a layer, optimizer or loss: nothing, a flag, a number, a text, a list of sizes,
/// an object such as an initializer or another layer, or a list of any of these.
using ConfigValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::shared_ptr<const ConfigObject>, std::shared_ptr<const ConfigList>>;

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
  /// Null for an unknown name.
  const ConfigValue* find(std::string_view name) const;
  const std::vector<std::pair<std::string, ConfigValue>>& entries() const { return entries_; }
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, ConfigValue>> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;  // in entries_, by name
};

struct ConfigList {
  std::vector<ConfigValue> values;
};

/// A class and the arguments that its object was made with.
struct ConfigObject {
  std::string class_name;  ///< empty: no object, but entries by name
  Config config = {};
  std::string module = {};           ///< of Keras, "keras.layers"
  std::string registered_name = {};  ///< of a class that is not Keras' own
  Config others = {};                ///< what a file has beside these, such as "inbound_nodes"
};

/// As the value of an argument.
TANDEM_EXPORT ConfigValue config_value(ConfigObject object);
TANDEM_EXPORT ConfigValue config_value(std::vector<ConfigValue> values);

}  // namespace tandem::keras
