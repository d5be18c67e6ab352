#pragma once

#include <map>
#include <string>
#include <variant>

#include "tandem/keras/model.h"

namespace tandem::keras::internal {

/// Histograms of the weights of each layer with the thread's default writer, and images of them if
/// `images`: kernels of convolutions one image a channel, others as they lie.
void write_weights(const Model& model, std::int64_t step, bool images);

/// "dense_kernel/histogram" for what TensorBoard would take for a port or a scope.
std::string weight_tag(const std::string& name, const char* kind);

using EmbeddingsMetadata = std::variant<std::string, std::map<std::string, std::string>>;
/// Writes LOG_DIR/projector_config.pbtxt for the Embedding layers of the model. Throws
/// InvalidArgumentError if `metadata` names other layers.
void write_projector_config(const Model& model, const std::string& log_dir,
                            const EmbeddingsMetadata& metadata);
/// Writes what the configuration points to, LOG_DIR/train/LAYER.tsv with a row for each line, and
/// the weights of the model as a checkpoint, LOG_DIR/train/keras_embedding.ckpt-EPOCH.
void write_embeddings(const Model& model, const std::string& log_dir, int epoch);

}  // namespace tandem::keras::internal
