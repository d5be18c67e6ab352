#include <chrono>
#include <ctime>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/hdf5.h"
#include "tandem/io/zip.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/shared_objects.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/internal/weights_file.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/serialization.h"
#include "tandem/keras/serialize.h"

// The `.keras` file of Keras 3: a zip archive of metadata.json, config.json and model.weights.h5.

namespace tandem::keras {
namespace {

constexpr const char* kMetadata = "metadata.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.weights.h5";
constexpr std::size_t kMaxBytes = std::size_t{1} << 40;  // nothing real is larger unpacked
// The version of Keras whose form this is.
constexpr const char* kKerasVersion = "3.15.1";

std::string metadata() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%m-%d@%H:%M:%S", &utc);
  ConfigObject object{.class_name = ""};
  object.config.set("keras_version", std::string(kKerasVersion));
  object.config.set("date_saved", std::string(date));
  return internal::to_json(object);
}

const std::string& entry(const std::vector<io::ZipEntry>& entries, const std::string& name,
                         const std::string& path) {
  for (const io::ZipEntry& e : entries) {
    if (e.name == name) return e.content;
  }
  throw DataLossError(cat(path, " lacks ", name, ": it is no model that Keras 3 saved."));
}

}  // namespace

void Model::save(const std::string& path) const {
  if (!path.ends_with(".keras")) {
    throw InvalidArgumentError(cat("Model::save: '", path,
                                   "' must end in .keras. Weights alone: save_weights; for ",
                                   "TensorFlow: export_graph."));
  }
  if (!built()) {
    throw FailedPreconditionError(cat("Model::save: model '", name(),
                                      "' has no weights yet. Give its first layer an Input, ",
                                      "call it, or call build(shape)."));
  }
  const internal::SharedObjects scope(internal::SharedObjects::Use::kWrite);
  ConfigObject object = internal::layer_object(*this);
  const ConfigObject compiled = internal::compile_config(*this);
  const bool with_optimizer = !compiled.config.entries().empty() && optimizer().impl()->built();
  if (!compiled.config.entries().empty())
    object.others.set("compile_config", config_value(compiled));
  const internal::WeightPlaces places = internal::weight_places(*this, with_optimizer);
  std::vector<io::ZipEntry> entries = {
      {kMetadata, metadata()},
      {kConfig, internal::to_json(object)},
      {kWeights, io::encode_hdf5(internal::weights_content(places))}};
  for (io::ZipEntry& vocabulary : internal::vocabulary_entries(places))
    entries.push_back(std::move(vocabulary));
  fs::write_file(path, io::make_zip(entries));
}

io::Hdf5Content internal::read_weights_file(const std::string& path) {
  const std::string bytes = fs::read_file(path);
  if (!path.ends_with(".keras")) return io::decode_hdf5(bytes, path);
  return io::decode_hdf5(entry(io::read_zip(bytes, kMaxBytes, path), kWeights, path),
                         cat(path, ": ", kWeights));
}

Model models::load_model(const std::string& path, const LoadModelOptions& options) {
  if (fs::exists(path) && fs::file_system_of(path).stat(path).is_directory) {
    throw InvalidArgumentError(cat("load_model: '", path, "' is a folder, no .keras file. A ",
                                   "SavedModel is loaded by td::saved_model::load."));
  }
  const utils::CustomObjectScope known(options.custom_objects);
  const std::vector<io::ZipEntry> entries = io::read_zip(fs::read_file(path), kMaxBytes, path);
  const ConfigObject object =
      internal::object_from_json(entry(entries, kConfig, path), cat(path, ": ", kConfig));
  const internal::SharedObjects scope(internal::SharedObjects::Use::kRead);
  const Layer layer = internal::layer_of_object(object);
  const auto impl = std::dynamic_pointer_cast<ModelImpl>(layer.impl());
  if (!impl) {
    throw InvalidArgumentError(
        cat("load_model: ", path, " holds a layer (", layer.class_name(), "), no model."));
  }
  const Model model(impl);
  const ConfigValue* compiled = object.others.find("compile_config");
  const auto* how = compiled ? std::get_if<std::shared_ptr<const ConfigObject>>(compiled) : nullptr;
  const bool compile = options.compile && how && !(*how)->config.entries().empty();
  if (compile) model.compile(internal::read_compile_config((*how)->config));
  const std::string name = cat(path, ": ", kWeights);
  const io::Hdf5Content weights = io::decode_hdf5(entry(entries, kWeights, path), name);
  const bool with_optimizer = compile && internal::has_optimizer(weights);
  const internal::WeightPlaces places = internal::weight_places(model, with_optimizer);
  internal::assign_weights(places, weights, name);
  internal::assign_vocabularies(places, entries, weights, path);
  return model;
}

}  // namespace tandem::keras
