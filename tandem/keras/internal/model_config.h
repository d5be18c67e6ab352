#pragma once

#include <string>
#include <string_view>

#include "tandem/keras/compile_options.h"
#include "tandem/keras/config.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/model.h"

namespace tandem::keras::internal {

/// The module of objects of a user's class that is not registered: to_json throws.
inline constexpr const char* kUnregistered = "?";

/// Class and arguments of a layer or model as Keras' files have them.
ConfigObject layer_object(const Layer& layer);
/// The layer of an object out of a file.
Layer layer_of_object(const ConfigObject& object);

/// How a model was compiled; no class if something in it has no form in a file, with a warning.
ConfigObject compile_config(const Model& model);
CompileOptions read_compile_config(const Config& config);

/// JSON, as Keras writes it. Throws UnimplementedError for functions of one's own in it.
std::string to_json(const ConfigObject& object);
/// Errors call the text `name`.
ConfigObject object_from_json(std::string_view json, const std::string& name);

}  // namespace tandem::keras::internal
