#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/config.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/loss.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/optimizer.h"
#include "tandem/keras/regularizers.h"
#include "tandem/keras/serialization.h"

/// Objects as class and arguments, and back: what `.keras` files hold of them. A model's whole
/// file: Model::save and models::load_model; its architecture alone: Model::to_json.
///
///     td::keras::ConfigObject saved = td::keras::layers::serialize(td::keras::Dense(10));
///     td::keras::Layer again = td::keras::layers::deserialize(saved);
///
/// `serialize` throws UnimplementedError for functions of one's own, `deserialize` for classes and
/// arguments that Tandem does not have, and InvalidArgumentError for values that do not fit.
namespace tandem::keras {

TANDEM_EXPORT ConfigObject serialize(const Layer& layer);
TANDEM_EXPORT Layer deserialize(const ConfigObject& object);

namespace activations {
/// The name of the function.
TANDEM_EXPORT std::string serialize(const ActivationFunction& activation);
TANDEM_EXPORT ActivationFunction deserialize(const std::string& name);
}  // namespace activations
namespace constraints {
TANDEM_EXPORT ConfigObject serialize(const Constraint& constraint);
TANDEM_EXPORT Constraint deserialize(const ConfigObject& object);
}  // namespace constraints
namespace initializers {
TANDEM_EXPORT ConfigObject serialize(const Initializer& initializer);
TANDEM_EXPORT Initializer deserialize(const ConfigObject& object);
}  // namespace initializers
namespace losses {
TANDEM_EXPORT ConfigObject serialize(const Loss& loss);
TANDEM_EXPORT Loss deserialize(const ConfigObject& object);
}  // namespace losses
namespace metrics {
TANDEM_EXPORT ConfigObject serialize(const Metric& metric);
TANDEM_EXPORT Metric deserialize(const ConfigObject& object);
}  // namespace metrics
namespace optimizers {
TANDEM_EXPORT ConfigObject serialize(const Optimizer& optimizer);
TANDEM_EXPORT Optimizer deserialize(const ConfigObject& object);
}  // namespace optimizers
namespace regularizers {
TANDEM_EXPORT ConfigObject serialize(const Regularizer& regularizer);
TANDEM_EXPORT Regularizer deserialize(const ConfigObject& object);
}  // namespace regularizers

namespace utils {

/// Any of the objects above.
inline ConfigObject serialize_keras_object(const Layer& object) { return keras::serialize(object); }
inline ConfigObject serialize_keras_object(const Constraint& object) {
  return constraints::serialize(object);
}
inline ConfigObject serialize_keras_object(const Initializer& object) {
  return initializers::serialize(object);
}
inline ConfigObject serialize_keras_object(const Loss& object) { return losses::serialize(object); }
inline ConfigObject serialize_keras_object(const Metric& object) {
  return metrics::serialize(object);
}
inline ConfigObject serialize_keras_object(const Optimizer& object) {
  return optimizers::serialize(object);
}
inline ConfigObject serialize_keras_object(const Regularizer& object) {
  return regularizers::serialize(object);
}
/// A Layer; the classes of other objects have `deserialize` of their own.
inline Layer deserialize_keras_object(const ConfigObject& object) {
  return keras::deserialize(object);
}
/// keras.saving's name of register_layer.
inline void register_keras_serializable(const std::string& package, const std::string& class_name,
                                        std::function<Layer(const Config&)> make) {
  register_layer(package, class_name, std::move(make));
}
/// "package>Class" of a class that register_layer made known; the name itself of other classes.
TANDEM_EXPORT std::string get_registered_name(const std::string& class_name);
/// What makes layers of a class "package>Class", as register_layer was given it; empty if there is
/// none.
TANDEM_EXPORT std::function<Layer(const Config&)> get_registered_object(const std::string& name);

/// All that register_layer and the scopes around have made known.
TANDEM_EXPORT CustomObjects get_custom_objects();
/// Makes classes of one's own known to what loads models, as long as it lives. Scopes end in the
/// reverse order; used while no other thread loads models.
class TANDEM_EXPORT CustomObjectScope {
 public:
  explicit CustomObjectScope(const CustomObjects& objects);
  ~CustomObjectScope();
  CustomObjectScope(const CustomObjectScope&) = delete;
  CustomObjectScope& operator=(const CustomObjectScope&) = delete;

 private:
  CustomObjects before_;
};
using custom_object_scope = CustomObjectScope;

}  // namespace utils
}  // namespace tandem::keras
