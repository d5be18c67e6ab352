#include "tandem/keras/serialize.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/model_config.h"

namespace tandem::keras {
namespace {

// Objects without a class are functions of the user's.
ConfigObject require_class(const char* kind, ConfigObject object) {
  if (object.class_name.empty() || object.class_name == "custom") {
    throw UnimplementedError(
        cat("serialize: the ", kind, " is a function of one's own, which has no form in a file."));
  }
  return object;
}

}  // namespace

ConfigObject serialize(const Layer& layer) {
  ConfigObject object = internal::layer_object(layer);
  if (object.module == internal::kUnregistered) {
    throw UnimplementedError(cat("serialize: ", layer.class_name(),
                                 " is a class of one's own. Make it known: register_layer "
                                 "(tandem/keras/serialization.h)."));
  }
  return object;
}
Layer deserialize(const ConfigObject& object) { return internal::layer_of_object(object); }

namespace activations {
std::string serialize(const ActivationFunction& activation) { return activation.name(); }
ActivationFunction deserialize(const std::string& name) { return ActivationFunction(name); }
}  // namespace activations

namespace constraints {
ConfigObject serialize(const Constraint& c) {
  return require_class(
      "constraint", {.class_name = c.name(), .config = c.config(), .module = "keras.constraints"});
}
Constraint deserialize(const ConfigObject& object) {
  return internal::make_object<Constraint>("constraint", object);
}
}  // namespace constraints

namespace initializers {
ConfigObject serialize(const Initializer& i) {
  return require_class(
      "initializer",
      {.class_name = i.name(), .config = i.config(), .module = "keras.initializers"});
}
Initializer deserialize(const ConfigObject& object) {
  return internal::make_object<Initializer>("initializer", object);
}
}  // namespace initializers

namespace losses {
ConfigObject serialize(const Loss& loss) { return require_class("loss", loss.made_of()); }
Loss deserialize(const ConfigObject& object) { return internal::make_object<Loss>("loss", object); }
}  // namespace losses

namespace metrics {
ConfigObject serialize(const Metric& metric) { return require_class("metric", metric.made_of()); }
Metric deserialize(const ConfigObject& object) {
  return internal::make_object<Metric>("metric", object);
}
}  // namespace metrics

namespace optimizers {
ConfigObject serialize(const Optimizer& optimizer) {
  const std::string& class_name = optimizer.impl()->class_name();
  if (!internal::ClassRegistry<Optimizer>::instance().find(class_name)) {
    throw UnimplementedError(
        cat("serialize: the optimizer's class ", class_name, " has no form in a file."));
  }
  return {
      .class_name = class_name, .config = optimizer.impl()->config(), .module = "keras.optimizers"};
}
Optimizer deserialize(const ConfigObject& object) {
  return internal::make_object<Optimizer>("optimizer", object);
}
}  // namespace optimizers

namespace regularizers {
ConfigObject serialize(const Regularizer& r) {
  return require_class(
      "regularizer",
      {.class_name = r.name(), .config = r.config(), .module = "keras.regularizers"});
}
Regularizer deserialize(const ConfigObject& object) {
  return internal::make_object<Regularizer>("regularizer", object);
}
}  // namespace regularizers

}  // namespace tandem::keras
