#pragma once

#include <memory>

#include "tandem/io/proto/messages.h"
#include "tandem/saved_model/internal/model_folder.h"
#include "tandem/saved_model/module.h"

namespace tandem::saved_model::internal {

/// The objects of a SavedModel of TensorFlow 2.
Module load_objects(std::shared_ptr<io::proto::MetaGraphDef> meta, const ModelFolder& folder);

/// What a SavedModel of TensorFlow 1 holds: variables and signatures.
Module load_graph(std::shared_ptr<io::proto::MetaGraphDef> meta, const ModelFolder& folder);

}  // namespace tandem::saved_model::internal
