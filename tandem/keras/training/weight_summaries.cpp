#include "tandem/keras/internal/weight_summaries.h"

#include <algorithm>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/internal/float_text.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/summary.h"
#include "tandem/keras/internal/names.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem::keras::internal {
namespace {

// Undefined for what is no image.
Tensor as_images(const Tensor& weight) {
  Tensor image = squeeze(weight);
  const auto size = [&](int axis) { return image.dim(axis); };
  switch (image.rank()) {
    case 1: return reshape(image, {1, size(0), 1, 1});
    case 2:
      if (size(0) > size(1)) image = transpose(image);
      return reshape(image, {1, size(0), size(1), 1});
    case 3:
      image = transpose(image, {2, 0, 1});
      return reshape(image, {size(0), size(1), size(2), 1});
    case 4: return size(3) == 1 || size(3) == 3 || size(3) == 4 ? image : Tensor();
    default: return {};
  }
}

std::vector<Layer> embedding_layers(const Model& model) {
  std::vector<Layer> found;
  for (const Layer& layer : model.layers()) {
    if (layer.class_name() == "Embedding") found.push_back(layer);
  }
  return found;
}

std::string tensor_path(const Layer& layer) { return cat("train/", layer.name(), ".tsv"); }

std::string in_pbtxt(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string metadata_of(const Layer& layer, const EmbeddingsMetadata& metadata) {
  if (const auto* all = std::get_if<std::string>(&metadata)) return *all;
  const auto& by_name = std::get<1>(metadata);
  const auto found = by_name.find(layer.name());
  return found == by_name.end() ? "" : found->second;
}

}  // namespace

std::string weight_tag(const std::string& name, const char* kind) {
  std::string tag = name;
  std::replace(tag.begin(), tag.end(), ':', '_');
  return cat(tag, "/", kind);
}

void write_weights(const Model& model, std::int64_t step, bool images) {
  for (const Layer& layer : model.layers()) {
    for (const Variable& weight : layer.weights()) {
      const Tensor value = weight.read_value();
      summary::histogram(weight_tag(weight.name(), "histogram"), value, {.step = step});
      if (!images || !is_floating(value.dtype())) continue;
      if (const Tensor image = as_images(cast(value, float32)); image.defined())
        summary::image(weight_tag(weight.name(), "image"), image, {.step = step});
    }
  }
}

void write_projector_config(const Model& model, const std::string& log_dir,
                            const EmbeddingsMetadata& metadata) {
  const std::vector<Layer> layers = embedding_layers(model);
  if (const auto* by_name = std::get_if<1>(&metadata)) {
    for (const auto& [name, path] : *by_name) {
      const bool known = std::any_of(layers.begin(), layers.end(),
                                     [&name = name](const Layer& l) { return l.name() == name; });
      if (known) continue;
      throw InvalidArgumentError(cat(
          "Unrecognized `Embedding` layer name passed to TensorBoard's `embeddings_metadata`: '",
          name, "'."));
    }
  }
  std::string text;
  for (const Layer& layer : layers) {
    text += cat("embeddings {\n  tensor_name: ", in_pbtxt(layer.name()), "\n");
    if (const std::string path = metadata_of(layer, metadata); !path.empty())
      text += cat("  metadata_path: ", in_pbtxt(path), "\n");
    text += cat("  tensor_path: ", in_pbtxt(tensor_path(layer)), "\n}\n");
  }
  fs::file_system_of(log_dir).make_directories(log_dir);
  fs::write_file(cat(log_dir, "/projector_config.pbtxt"), text);
}

void write_embeddings(const Model& model, const std::string& log_dir, int epoch) {
  for (const Layer& layer : embedding_layers(model)) {
    const Tensor rows = cast(layer.weights().at(0).read_value(), float32);
    const auto values = rows.data<float>();
    const auto width = static_cast<std::size_t>(rows.dim(1));
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i)
      text += cat(values[i], (i + 1) % width == 0 ? '\n' : '\t');
    fs::write_file(cat(log_dir, "/", tensor_path(layer)), text);
  }
  model.save_weights(cat(log_dir, "/train/keras_embedding.ckpt-", epoch));
}

}  // namespace tandem::keras::internal
