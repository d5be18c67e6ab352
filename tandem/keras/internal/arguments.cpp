#include "tandem/keras/internal/arguments.h"

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/model_config.h"

namespace tandem::keras::internal {
namespace {

[[noreturn]] void wrong_kind(const char* wanted) {
  throw InvalidArgumentError(cat("the value is no ", wanted, "."));
}

template <class T>
const T& get(const ConfigValue& value, const char* wanted) {
  const T* found = std::get_if<T>(&value);
  if (!found) wrong_kind(wanted);
  return *found;
}

bool is_none(const ConfigValue& value) { return std::holds_alternative<std::monostate>(value); }

// "module" is where Keras finds the class.
ConfigValue object(const char* module, const std::string& class_name, Config config) {
  return config_value(
      ConfigObject{.class_name = class_name, .config = std::move(config), .module = module});
}

constexpr std::pair<Reduction, const char*> kReductions[] = {
    {Reduction::kSumOverBatchSize, "sum_over_batch_size"},
    {Reduction::kSum, "sum"},
    {Reduction::kMean, "mean"},
    {Reduction::kMeanWithSampleWeight, "mean_with_sample_weight"},
    {Reduction::kNone, "none"}};

std::vector<ConfigValue> list_of(const ConfigValue& value) {
  if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&value))
    return {sizes->begin(), sizes->end()};
  return get<std::shared_ptr<const ConfigList>>(value, "list")->values;
}

}  // namespace

ConfigValue to_config(bool value) { return value; }
ConfigValue to_config(int value) { return std::int64_t{value}; }
ConfigValue to_config(std::int64_t value) { return value; }
ConfigValue to_config(double value) { return value; }
ConfigValue to_config(const std::string& value) { return value; }
ConfigValue to_config(const std::vector<std::int64_t>& value) {
  return value.empty() ? ConfigValue() : ConfigValue(value);
}
ConfigValue to_config(const std::vector<int>& value) {
  return to_config(std::vector<std::int64_t>(value.begin(), value.end()));
}
ConfigValue to_config(const std::vector<double>& value) {
  if (value.empty()) return {};
  return config_value(std::vector<ConfigValue>(value.begin(), value.end()));
}
ConfigValue to_config(const std::vector<std::string>& value) {
  if (value.empty()) return {};
  return config_value(std::vector<ConfigValue>(value.begin(), value.end()));
}
ConfigValue sizes_to_config(const std::vector<std::int64_t>& value) {
  if (value.empty()) return {};
  std::vector<ConfigValue> sizes(value.size());  // a size that is not known is none
  for (std::size_t i = 0; i < value.size(); ++i)
    if (value[i] >= 0) sizes[i] = value[i];
  return config_value(std::move(sizes));
}
ConfigValue to_config(const Size2D& value) {
  return std::vector<std::int64_t>{value.height, value.width};
}
ConfigValue to_config(const Size3D& value) {
  return std::vector<std::int64_t>{value.depth, value.height, value.width};
}
ConfigValue to_config(const LayerAxes& value) {
  if (value.list().size() == 1) return std::int64_t{value.list()[0]};
  return to_config(value.list());
}
ConfigValue to_config(const Margins& value) {
  std::vector<ConfigValue> pairs;
  for (const Margins::Pair& pair : value.pairs()) pairs.push_back(to_config(pair));
  return config_value(std::move(pairs));
}
ConfigValue to_config(const std::pair<std::int64_t, std::int64_t>& value) {
  return std::vector<std::int64_t>{value.first, value.second};
}
ConfigValue to_config(const ActivationFunction& value) { return value.name(); }
ConfigValue to_config(const Initializer& value) {
  return object("keras.initializers", value.name(), value.config());
}
ConfigValue to_config(const Regularizer& value) {
  if (!value.defined()) return {};
  return object("keras.regularizers", value.name(), value.config());
}
ConfigValue to_config(const Constraint& value) {
  if (!value.defined()) return {};
  return object("keras.constraints", value.name(), value.config());
}
ConfigValue to_config(const Reduction& value) {
  for (const auto& [reduction, name] : kReductions) {
    if (reduction == value) return std::string(name);
  }
  return {};
}
ConfigValue to_config(const LearningRate& value) {
  if (!value.schedule()) return value.value();
  const ConfigObject& made_of = value.schedule()->made_of();
  return object("keras.optimizers.schedules", made_of.class_name, made_of.config);
}
ConfigValue to_config(const Layer& value) {
  return value.defined() ? config_value(layer_object(value)) : ConfigValue();
}
ConfigValue to_config(const std::vector<Layer>& value) {
  std::vector<ConfigValue> layers;
  for (const Layer& layer : value) layers.push_back(to_config(layer));
  return config_value(std::move(layers));
}

void from_config(const ConfigValue& value, bool& into) { into = get<bool>(value, "truth value"); }
void from_config(const ConfigValue& value, std::int64_t& into) {
  if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&value);
      sizes && sizes->size() == 1) {  // of the only axis
    into = sizes->front();
    return;
  }
  into = get<std::int64_t>(value, "whole number");
}
void from_config(const ConfigValue& value, int& into) {
  std::int64_t number = 0;
  from_config(value, number);
  if (number < INT32_MIN || number > INT32_MAX) wrong_kind("number of this size");
  into = static_cast<int>(number);
}
void from_config(const ConfigValue& value, double& into) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    into = static_cast<double>(*number);
  } else {
    into = get<double>(value, "number");
  }
}
void from_config(const ConfigValue& value, std::string& into) {
  into = get<std::string>(value, "text");
}
void from_config(const ConfigValue& value, std::vector<std::int64_t>& into) {
  into.clear();
  if (is_none(value)) return;
  if (const auto* one = std::get_if<std::int64_t>(&value)) {
    into = {*one};
    return;
  }
  for (const ConfigValue& entry : list_of(value)) {
    if (is_none(entry)) {
      into.push_back(-1);  // an unknown size
    } else {
      from_config(entry, into.emplace_back());
    }
  }
}
void from_config(const ConfigValue& value, std::vector<int>& into) {
  std::vector<std::int64_t> numbers;
  from_config(value, numbers);
  into.clear();
  for (const std::int64_t number : numbers) from_config(ConfigValue(number), into.emplace_back());
}
void from_config(const ConfigValue& value, std::vector<double>& into) {
  into.clear();
  if (is_none(value)) return;
  if (std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value)) {
    from_config(value, into.emplace_back());
    return;
  }
  for (const ConfigValue& entry : list_of(value)) from_config(entry, into.emplace_back());
}
void from_config(const ConfigValue& value, std::vector<std::string>& into) {
  into.clear();
  if (is_none(value)) return;
  for (const ConfigValue& entry : list_of(value)) from_config(entry, into.emplace_back());
}

namespace {

std::vector<std::int64_t> sizes_of_config(const ConfigValue& value, std::size_t count) {
  std::vector<std::int64_t> sizes;
  from_config(value, sizes);
  if (sizes.size() == 1) sizes.resize(count, sizes[0]);
  if (sizes.size() != count) wrong_kind("list of as many sizes as there are axes");
  return sizes;
}

const ConfigObject& object_of(const ConfigValue& value, const char* wanted) {
  return *get<std::shared_ptr<const ConfigObject>>(value, wanted);
}

}  // namespace

void from_config(const ConfigValue& value, Size2D& into) {
  const auto sizes = sizes_of_config(value, 2);
  into = Size2D(sizes[0], sizes[1]);
}
void from_config(const ConfigValue& value, Size3D& into) {
  const auto sizes = sizes_of_config(value, 3);
  into = Size3D(sizes[0], sizes[1], sizes[2]);
}
void from_config(const ConfigValue& value, LayerAxes& into) {
  std::vector<int> axes;
  from_config(value, axes);
  if (axes.empty()) wrong_kind("axis");
  into = LayerAxes(std::move(axes));
}
void from_config(const ConfigValue& value, std::pair<std::int64_t, std::int64_t>& into) {
  const auto sizes = sizes_of_config(value, 2);
  into = {sizes[0], sizes[1]};
}
void from_config(const ConfigValue& value, Margins& into) {
  if (const auto* one = std::get_if<std::int64_t>(&value)) {
    into = Margins(*one);
    return;
  }
  std::vector<Margins::Pair> pairs;
  for (const ConfigValue& entry : list_of(value)) from_config(entry, pairs.emplace_back());
  if (pairs.empty()) wrong_kind("list of sizes");
  into = Margins(std::move(pairs));
}
void from_config(const ConfigValue& value, ActivationFunction& into) {
  if (is_none(value)) {
    into = {};
    return;
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    into = ActivationFunction(*text);
    return;
  }
  // A function of one's own, or a layer that serves as an activation.
  const ConfigObject& object = object_of(value, "name of an activation");
  throw UnimplementedError(
      cat("the activation is an object of class '", object.class_name, "', which is not read."));
}
void from_config(const ConfigValue& value, Initializer& into) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    into = Initializer(*text);
  } else {
    into = make_object<Initializer>("initializer", object_of(value, "initializer"));
  }
}
void from_config(const ConfigValue& value, Regularizer& into) {
  if (is_none(value)) {
    into = {};
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    into = Regularizer(*text);
  } else {
    into = make_object<Regularizer>("regularizer", object_of(value, "regularizer"));
  }
}
void from_config(const ConfigValue& value, Constraint& into) {
  if (is_none(value)) {
    into = {};
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    into = Constraint(*text);
  } else {
    into = make_object<Constraint>("constraint", object_of(value, "constraint"));
  }
}
void from_config(const ConfigValue& value, Reduction& into) {
  if (is_none(value)) {
    into = Reduction::kNone;
    return;
  }
  const auto& text = get<std::string>(value, "name of a reduction");
  for (const auto& [reduction, name] : kReductions) {
    if (text == name) {
      into = reduction;
      return;
    }
  }
  wrong_kind("name of a reduction");
}
void from_config(const ConfigValue& value, LearningRate& into) {
  double rate = 0;
  if (const auto* object = std::get_if<std::shared_ptr<const ConfigObject>>(&value)) {
    into = make_object<LearningRateSchedule>("schedule", **object);
    return;
  }
  from_config(value, rate);
  into = rate;
}
void from_config(const ConfigValue& value, DTypePolicy& into) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    into = DTypePolicy(*text);
    return;
  }
  const ConfigObject& object = object_of(value, "policy of dtypes");
  const ConfigValue* name = object.config.find("name");
  if (object.class_name != "DTypePolicy" || !name) {
    throw UnimplementedError(
        cat("policies of class '", object.class_name, "' are not read, only DTypePolicy."));
  }
  into = DTypePolicy(get<std::string>(*name, "name of a policy"));
}
void from_config(const ConfigValue& value, Layer& into) {
  into = is_none(value) ? Layer() : layer_of_object(object_of(value, "layer"));
}
void from_config(const ConfigValue& value, std::vector<Layer>& into) {
  into.clear();
  for (const ConfigValue& entry : list_of(value)) from_config(entry, into.emplace_back());
}

void ArgumentReader::fixed(const char* name, const std::string& value) {
  std::string given = value;
  (*this)(name, given);
  if (given == value) return;
  throw UnimplementedError(
      cat(who_, ": argument '", name, "' is \"", value, "\" in Tandem, got \"", given, "\"."));
}

void ArgumentReader::check_all_used() const {
  // What all have, and each kind of object reads in its own way.
  static const std::set<std::string> kEverywhere = {"name", "trainable", "dtype"};
  for (const auto& [name, value] : config_.entries()) {
    if (used_.count(name) > 0 || kEverywhere.count(name) > 0 || is_none(value)) continue;
    if (const bool* flag = std::get_if<bool>(&value); flag && !*flag) continue;
    throw UnimplementedError(
        cat(who_, ": Tandem has no argument '", name, "', and the file has a value for it."));
  }
}

template <class Handle>
ClassRegistry<Handle>& ClassRegistry<Handle>::instance() {
  static ClassRegistry& registry = *new ClassRegistry;  // NOLINT: used until the program ends
  return registry;
}
template class ClassRegistry<Layer>;
template class ClassRegistry<Initializer>;
template class ClassRegistry<Regularizer>;
template class ClassRegistry<Constraint>;
template class ClassRegistry<LearningRateSchedule>;
template class ClassRegistry<Loss>;
template class ClassRegistry<Metric>;
template class ClassRegistry<Optimizer>;

}  // namespace tandem::keras::internal
