#pragma once

#include <map>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/keras/model.h"
#include "tandem/saved_model/module.h"

namespace tandem::saved_model {

struct SaveOptions {
  /// What servers call, besides the signatures of the module itself.
  std::map<std::string, Signature> signatures = {};
  /// Empty: those under which the module was saved before, or "serve".
  StringList tags = {};
};

/// Writes a SavedModel: a folder that tf.saved_model.load, tf.keras.layers.TFSMLayer, TensorFlow's
/// servers and `load` read.
///
///     Module model;
///     model.set("w", w).set("f", Function(f.concrete(x), {.inputs = {"x"}}));
///     save(model, "folder", {.signatures = {{"serving_default", Signature(f.concrete(x))}}});
///
/// Variables and tables that functions captured are saved also where they are no parts of the
/// module: as parts of "_captured". Tables are saved with what they hold now. Assets are copied.
/// Custom gradients (td::custom_gradient in a function) come along, as by TensorFlow's
/// experimental_custom_gradients.
///
/// The folder appears whole, under its name, when all is written; a SavedModel that was there is
/// replaced then. In a store, which renames no folder in one step, the object saved_model.pb is
/// written last, and without it a folder is no SavedModel. Throws AlreadyExistsError for a folder
/// that holds something else, InvalidArgumentError for signatures that are none, UnimplementedError
/// for what has no form in a file (queues and other resources that functions captured).
TANDEM_EXPORT void save(const Module& module, const String& folder,
                        const SaveOptions& options = {});

/// Writes a model of Keras as `model.export` does: the object has the function "serve", which
/// computes what `predict` does, the signatures "serving_default" and "serve", and the lists
/// "variables", "trainable_variables" and "non_trainable_variables". Throws FailedPreconditionError
/// if the model's inputs are not known.
TANDEM_EXPORT void save(const keras::Model& model, const String& folder,
                        const SaveOptions& options = {});

/// The module that `save` writes for a model of Keras, to add parts or signatures to.
TANDEM_EXPORT Module module_of(const keras::Model& model);

}  // namespace tandem::saved_model
