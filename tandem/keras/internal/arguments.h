#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/config.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/dtype_policy.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/padding.h"
#include "tandem/keras/layers/sizes.h"
#include "tandem/keras/reduction.h"
#include "tandem/keras/regularizers.h"
#include "tandem/keras/schedules.h"

namespace tandem::keras::internal {

// The arguments of a class stand in one list, which serves both ways. It is a function object that
// calls `a(name, member)` for each of them:
//
//     constexpr auto kArguments = [](auto& a, auto& o, auto& units) {
//       a("units", units);
//       a("activation", o.activation);
//     };
//
// With an ArgumentWriter they go into a Config, with an ArgumentReader they come out of one.

ConfigValue to_config(bool value);
ConfigValue to_config(int value);
ConfigValue to_config(std::int64_t value);
ConfigValue to_config(double value);
ConfigValue to_config(const std::string& value);
ConfigValue to_config(const std::vector<std::int64_t>& value);
ConfigValue to_config(const std::vector<int>& value);
ConfigValue to_config(const std::vector<double>& value);
/// Nothing for an empty list.
ConfigValue to_config(const std::vector<std::string>& value);
/// Nothing for an empty list, and for each size of -1.
ConfigValue sizes_to_config(const std::vector<std::int64_t>& value);
ConfigValue to_config(const Size2D& value);
ConfigValue to_config(const Size3D& value);
ConfigValue to_config(const LayerAxes& value);
ConfigValue to_config(const Margins& value);
ConfigValue to_config(const std::pair<std::int64_t, std::int64_t>& value);
ConfigValue to_config(const ActivationFunction& value);
ConfigValue to_config(const Initializer& value);
ConfigValue to_config(const Regularizer& value);
ConfigValue to_config(const Constraint& value);
ConfigValue to_config(const Reduction& value);
ConfigValue to_config(const LearningRate& value);
ConfigValue to_config(const Layer& value);
ConfigValue to_config(const std::vector<Layer>& value);
template <class T>
ConfigValue to_config(const std::optional<T>& value) {
  return value ? to_config(*value) : ConfigValue();
}

// Throw InvalidArgumentError for a value of another kind.
void from_config(const ConfigValue& value, bool& into);
void from_config(const ConfigValue& value, int& into);
void from_config(const ConfigValue& value, std::int64_t& into);
void from_config(const ConfigValue& value, double& into);
void from_config(const ConfigValue& value, std::string& into);
void from_config(const ConfigValue& value, std::vector<std::int64_t>& into);
void from_config(const ConfigValue& value, std::vector<int>& into);
void from_config(const ConfigValue& value, std::vector<double>& into);
void from_config(const ConfigValue& value, std::vector<std::string>& into);
void from_config(const ConfigValue& value, Size2D& into);
void from_config(const ConfigValue& value, Size3D& into);
void from_config(const ConfigValue& value, LayerAxes& into);
void from_config(const ConfigValue& value, Margins& into);
void from_config(const ConfigValue& value, std::pair<std::int64_t, std::int64_t>& into);
void from_config(const ConfigValue& value, ActivationFunction& into);
void from_config(const ConfigValue& value, Initializer& into);
void from_config(const ConfigValue& value, Regularizer& into);
void from_config(const ConfigValue& value, Constraint& into);
void from_config(const ConfigValue& value, Reduction& into);
void from_config(const ConfigValue& value, LearningRate& into);
void from_config(const ConfigValue& value, DTypePolicy& into);
void from_config(const ConfigValue& value, Layer& into);
void from_config(const ConfigValue& value, std::vector<Layer>& into);
template <class T>
T initial_argument() {
  return T();
}
template <>
inline Size2D initial_argument<Size2D>() {
  return Size2D(1);
}
template <>
inline Size3D initial_argument<Size3D>() {
  return Size3D(1);
}
template <>
inline Margins initial_argument<Margins>() {
  return Margins(0);
}
template <class T>
void from_config(const ConfigValue& value, std::optional<T>& into) {
  if (std::holds_alternative<std::monostate>(value)) {
    into.reset();
    return;
  }
  into = initial_argument<T>();
  from_config(value, *into);
}

class ArgumentWriter {
 public:
  explicit ArgumentWriter(Config& config) : config_(config) {}
  template <class T>
  void operator()(const char* name, const T& value) {
    config_.set(name, to_config(value));
  }
  /// A list of sizes in which Keras says None where Tandem says -1.
  void sizes(const char* name, const std::vector<std::int64_t>& value) {
    config_.set(name, sizes_to_config(value));
  }
  /// An argument of Keras that Tandem's class lacks, and whose value is then without meaning.
  void ignore(const char*) {}
  /// An argument of Keras of whose values Tandem's class has this one alone.
  void fixed(const char* name, const std::string& value) { config_.set(name, value); }

 private:
  Config& config_;
};

class ArgumentReader {
 public:
  /// `who` is what errors call the object: "Dense 'dense'".
  ArgumentReader(const Config& config, std::string who) : config_(config), who_(std::move(who)) {}

  /// Leaves `value` as it is where the config lacks the argument.
  template <class T>
  void operator()(const char* name, T& value) {
    const ConfigValue* found = find(name);
    if (!found) return;
    try {
      from_config(*found, value);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(cat(who_, ": argument '", name, "': ", error.what()));
    }
  }
  void sizes(const char* name, std::vector<std::int64_t>& value) { (*this)(name, value); }
  void ignore(const char* name) { find(name); }
  /// Throws UnimplementedError where the config has another value.
  void fixed(const char* name, const std::string& value);
  /// name, trainable and dtype, as far as the options have them.
  template <class Options>
  void settings(Options& o) {
    if constexpr (requires { o.name; }) (*this)("name", o.name);
    if constexpr (requires { o.trainable; }) (*this)("trainable", o.trainable);
    if constexpr (requires { o.dtype; }) (*this)("dtype", o.dtype);
  }
  const ConfigValue* find(const char* name) {
    used_.insert(name);
    return config_.find(name);
  }
  /// Throws UnimplementedError for an argument that was not asked for, unless it says nothing or
  /// no.
  void check_all_used() const;

 private:
  const Config& config_;
  std::string who_;
  std::set<std::string> used_;
};

/// The arguments of an object of a class of Keras.
template <class List, class... Arguments>
Config written_arguments(const List& list, const Arguments&... arguments) {
  Config config;
  ArgumentWriter writer(config);
  list(writer, arguments...);
  return config;
}

}  // namespace tandem::keras::internal
