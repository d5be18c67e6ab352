#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/loss_scale_optimizer.h"
#include "tandem/keras/model_impl.h"

namespace tandem::keras::internal {
namespace {

// One thing for all outputs, one for each, or by the outputs' names.
template <class Each, class Write>
ConfigValue for_outputs(const std::vector<Each>& each, const std::map<std::string, Each>& by_name,
                        Write write) {
  if (!each.empty()) {
    std::vector<ConfigValue> list;
    for (const Each& one : each) list.push_back(write(one));
    return config_value(std::move(list));
  }
  if (by_name.empty()) return {};
  ConfigObject names{.class_name = ""};
  for (const auto& [name, one] : by_name) names.config.set(name, write(one));
  return config_value(std::move(names));
}

ConfigValue loss_value(const Loss& loss) {
  if (!loss.defined()) return {};
  if (loss.made_of().class_name.empty())
    throw UnimplementedError(cat("the loss '", loss.name(), "' is a function of one's own"));
  return config_value(loss.made_of());
}

ConfigValue metric_value(const Metric& metric) {
  if (const std::string name = metric.given_by_name(); !name.empty()) return name;
  if (metric.made_of().class_name.empty())
    throw UnimplementedError(cat("the metric '", metric.name(), "' is a function of one's own"));
  return config_value(metric.made_of());
}

ConfigValue metric_list(const std::vector<Metric>& metrics) {
  std::vector<ConfigValue> list;
  for (const Metric& metric : metrics) list.push_back(metric_value(metric));
  return config_value(std::move(list));
}

ConfigValue metrics_value(const Metrics& metrics) {
  if (!metrics.all().empty()) return metric_list(metrics.all());
  return for_outputs(metrics.each(), metrics.by_name(), metric_list);
}

ConfigValue optimizer_value(const Trainer& trainer) {
  // Keras wraps the optimizer itself where the model computes in float16.
  const Optimizer& now = trainer.optimizer();
  const Optimizer& optimizer =
      optimizers::LossScaleOptimizer::is(now) ? trainer.given().optimizer : now;
  const std::string& class_name = optimizer.impl()->class_name();
  if (!ClassRegistry<Optimizer>::instance().find(class_name))
    throw UnimplementedError(cat("the optimizer's class ", class_name, " has no form in a file"));
  return config_value(ConfigObject{.class_name = class_name,
                                   .config = optimizer.impl()->config(),
                                   .module = "keras.optimizers"});
}

// ---- Reading ----

using Object = std::shared_ptr<const ConfigObject>;
using List = std::shared_ptr<const ConfigList>;

Loss read_loss(const ConfigValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return {};
  if (const auto* name = std::get_if<std::string>(&value)) return Loss(*name);
  const Object* object = std::get_if<Object>(&value);
  if (!object) throw InvalidArgumentError("A loss in the file is neither a name nor an object.");
  return make_object<Loss>("loss", **object);
}

Losses read_losses(const ConfigValue& value) {
  if (const List* list = std::get_if<List>(&value)) {
    std::vector<Loss> each;
    for (const ConfigValue& one : (*list)->values) each.push_back(read_loss(one));
    return each;
  }
  if (const Object* object = std::get_if<Object>(&value); object && (*object)->class_name.empty()) {
    std::map<std::string, Loss> by_name;
    for (const auto& [name, one] : (*object)->config.entries()) by_name[name] = read_loss(one);
    return by_name;
  }
  const Loss loss = read_loss(value);
  return loss.defined() ? Losses(loss) : Losses();
}

Metric read_metric(const ConfigValue& value) {
  if (const auto* name = std::get_if<std::string>(&value)) return Metric(*name);
  const Object* object = std::get_if<Object>(&value);
  if (!object) throw InvalidArgumentError("A metric in the file is neither a name nor an object.");
  return make_object<Metric>("metric", **object);
}

std::vector<Metric> read_metric_list(const ConfigValue& value) {
  std::vector<Metric> metrics;
  if (const List* list = std::get_if<List>(&value)) {
    for (const ConfigValue& one : (*list)->values) metrics.push_back(read_metric(one));
  } else if (!std::holds_alternative<std::monostate>(value) &&
             !std::holds_alternative<std::vector<std::int64_t>>(value)) {
    metrics.push_back(read_metric(value));
  }
  return metrics;
}

Metrics read_metrics(const ConfigValue* value) {
  if (!value) return {};
  if (const Object* object = std::get_if<Object>(value); object && (*object)->class_name.empty()) {
    std::map<std::string, std::vector<Metric>> by_name;
    for (const auto& [name, list] : (*object)->config.entries())
      by_name[name] = read_metric_list(list);
    return by_name;
  }
  const List* list = std::get_if<List>(value);
  const bool nested = list && !(*list)->values.empty() &&
                      (std::holds_alternative<List>((*list)->values[0]) ||
                       std::holds_alternative<std::monostate>((*list)->values[0]));
  if (!nested) return read_metric_list(*value);
  std::vector<std::vector<Metric>> each;
  for (const ConfigValue& one : (*list)->values) each.push_back(read_metric_list(one));
  return each;
}

ConfigValue weights_value(const LossWeights& weights) {
  if (weights.by_name().empty()) return to_config(weights.each());
  Config config;
  for (const auto& [name, weight] : weights.by_name()) config.set(name, weight);
  return config_value(ConfigObject{.class_name = "", .config = config});
}
LossWeights read_weights(const ConfigValue& value) {
  std::vector<double> each;
  const Object* object = std::get_if<Object>(&value);
  if (!object) {
    from_config(value, each);
    return each;
  }
  std::map<std::string, double> by_name;
  for (const auto& [name, weight] : (*object)->config.entries()) from_config(weight, by_name[name]);
  return by_name;
}

}  // namespace

ConfigObject compile_config(const Model& model) {
  const auto& trainer = model.model_impl().trainer();
  if (!trainer) return {};
  const CompileOptions& given = trainer->given();
  ConfigObject object{.class_name = ""};
  try {
    object.config.set("optimizer", optimizer_value(*trainer));
    object.config.set("loss",
                      given.loss.all().defined()
                          ? loss_value(given.loss.all())
                          : for_outputs(given.loss.each(), given.loss.by_name(), loss_value));
    object.config.set("loss_weights", weights_value(given.loss_weights));
    object.config.set("metrics", metrics_value(given.metrics));
    object.config.set("weighted_metrics", metrics_value(given.weighted_metrics));
    object.config.set("run_eagerly", given.run_eagerly);
    object.config.set("steps_per_execution", std::int64_t{1});
    object.config.set("jit_compile", false);
  } catch (const UnimplementedError& error) {
    log(LogLevel::kWarning, cat("Model::save: ", error.what(),
                                ", so the file does not say how the model was compiled."));
    return {};
  }
  return object;
}

CompileOptions read_compile_config(const Config& config) {
  CompileOptions options;
  const ConfigValue* optimizer = config.find("optimizer");
  if (optimizer) {
    if (const auto* name = std::get_if<std::string>(optimizer)) {
      options.optimizer = Optimizer(*name);
    } else if (const Object* object = std::get_if<Object>(optimizer)) {
      options.optimizer = make_object<Optimizer>("optimizer", **object);
    }
  }
  if (const ConfigValue* loss = config.find("loss")) options.loss = read_losses(*loss);
  if (const ConfigValue* weights = config.find("loss_weights"))
    options.loss_weights = read_weights(*weights);
  options.metrics = read_metrics(config.find("metrics"));
  options.weighted_metrics = read_metrics(config.find("weighted_metrics"));
  if (const ConfigValue* eagerly = config.find("run_eagerly")) {
    if (const bool* flag = std::get_if<bool>(eagerly)) options.run_eagerly = *flag;
  }
  return options;
}

}  // namespace tandem::keras::internal
