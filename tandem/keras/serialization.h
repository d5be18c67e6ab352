#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/keras/config.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/model.h"

namespace tandem::keras {

namespace utils {
/// What makes layers of classes of one's own, by the classes' names.
using CustomObjects = std::map<std::string, std::function<Layer(const Config&)>>;
}  // namespace utils

/// A model of the architecture that Model::to_json or Keras' `model.to_json()` wrote: Sequential,
/// functional, nested models, layers that are used several times. Weights are new. Throws
/// DataLossError for what is no JSON, InvalidArgumentError for arguments that do not fit, and
/// UnimplementedError for classes and arguments that Tandem does not have; all name the layer.
/// `custom_objects` makes layers of classes that register_layer has not been given, in this call.
TANDEM_EXPORT Model model_from_json(StringView json,
                                    const utils::CustomObjects& custom_objects = {});

/// A layer of Keras' class name ("Dense") or of one that was registered, made with these arguments:
/// the reverse of `layer.class_name()` and `layer.config()`. Throws as model_from_json.
TANDEM_EXPORT Layer layer_from_config(const String& class_name, const Config& config);

/// Makes a class of your own known to files, as keras.saving.register_keras_serializable does.
/// `class_name` is what the LayerImpl was constructed with, and `package` what Keras calls its
/// package: together they are the registered name "package>Class". `make` gets what the layer's
/// `describe` wrote, with name, trainable and dtype. Thread-safe only before models are loaded.
///
///     td::keras::register_layer("my", "Scale", [](const td::keras::Config& config) {
///       return td::keras::make_layer<Scale>(std::get<double>(config.at("factor")));
///     });
TANDEM_EXPORT void register_layer(const String& package, const String& class_name,
                                  std::function<Layer(const Config&)> make);

namespace models {

using keras::model_from_json;

struct LoadModelOptions {
  /// Compiles the model as it was, with what the optimizer remembered, so that training goes on.
  bool compile = true;
  /// Makes layers of classes that register_layer has not been given, while this model is loaded.
  utils::CustomObjects custom_objects = {};
};

/// Reads a `.keras` file of Keras 3 or of Model::save: the architecture, the weights, and how it
/// was compiled. Throws as model_from_json; DataLossError where the archive is damaged or lacks a
/// weight.
TANDEM_EXPORT Model load_model(const std::string& path, const LoadModelOptions& options = {});
inline Model load_model(const char* path, const LoadModelOptions& options = {}) {
  return load_model(tandem::internal::name_argument(path, "the path of a model"), options);
}

}  // namespace models

/// Keras' newer path of what reads and registers.
namespace saving {
using models::load_model;
using models::LoadModelOptions;
}  // namespace saving
}  // namespace tandem::keras
