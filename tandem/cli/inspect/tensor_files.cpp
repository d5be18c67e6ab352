#include <limits>
#include <memory>
#include <utility>

#include "tandem/cli/inspect/contents.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/hdf5.h"
#include "tandem/io/npy.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/tensor_bundle.h"
#include "tandem/io/zip.h"

// Formats that are tensors by name.

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t bytes_of(DType dtype, const Shape& shape) {
  return is_object(dtype) ? 0
                          : static_cast<std::uint64_t>(shape.num_elements()) * dtype_size(dtype);
}

void add_hdf5(const std::string& bytes, const std::string& name, FileContents& contents) {
  const io::Hdf5Content file = io::decode_hdf5(bytes, name);
  for (const auto& [path, array] : file.datasets)
    contents.tensors.push_back(tensor_of(path, array));
  Json names = Json::object();
  for (const auto& [path, attributes] : file.attributes) {
    for (const auto& [key, text] : attributes) names[path][key] = text;
  }
  if (!names.empty()) contents.facts["attributes"] = std::move(names);
}

// A line for each layer, those of models within below them.
void add_layers(const Json& layers, const std::string& indent, Json& lines) {
  if (!layers.is_array()) return;
  for (const Json& layer : layers) {
    if (!layer.is_object() || !layer.contains("class_name")) continue;
    const Json config = layer.value("config", Json::object());
    if (!config.is_object()) continue;
    const Json name = config.value("name", layer.value("name", Json()));
    const Json kind = layer["class_name"];
    if (!kind.is_string()) continue;
    lines.push_back(cat(indent, name.is_string() ? name.get<std::string>() : "?", "  ",
                        kind.get<std::string>()));
    if (config.contains("layers")) add_layers(config["layers"], indent + "  ", lines);
  }
}

Json parse(const std::string& text, const std::string& name) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DataLossError(cat(name, " is no JSON."));
  return json;
}

}  // namespace

FileContents npy_contents(const std::string& path) {
  return {"npy", Json::object(), {tensor_of("array", io::read_npy(path))}};
}

FileContents npz_contents(const std::string& path) {
  FileContents contents{"npz", Json::object(), {}};
  for (const auto& [name, tensor] : io::load_npz(path))
    contents.tensors.push_back(tensor_of(name, tensor.array()));
  return contents;
}

FileContents safetensors_contents(const std::string& path) {
  const auto reader = std::make_shared<io::SafetensorsReader>(path);
  FileContents contents{"safetensors", Json::object(), {}};
  if (!reader->metadata().empty()) contents.facts["metadata"] = reader->metadata();
  for (const std::string& name : reader->names()) {
    FileTensor tensor{
        name, reader->type(name), reader->shape(name).to_vector(), reader->num_bytes(name), {}};
    try {
      tensor.dtype = dtype_name(reader->dtype(name));
      tensor.read = [reader, name] { return reader->read(name); };
    } catch (const UnimplementedError&) {  // its own name stays, and there are no statistics
    }
    contents.tensors.push_back(std::move(tensor));
  }
  return contents;
}

FileContents checkpoint_contents(const std::string& prefix) {
  const auto reader = std::make_shared<io::TensorBundleReader>(prefix);
  FileContents contents{"checkpoint", Json::object(), {}};
  contents.facts["prefix"] = prefix;
  for (const std::string& name : reader->names()) {
    const DType dtype = reader->dtype(name);
    const Shape shape = reader->shape(name);
    contents.tensors.push_back({name, dtype_name(dtype), shape.to_vector(), bytes_of(dtype, shape),
                                [reader, name] { return reader->read(name); }});
  }
  return contents;
}

FileContents hdf5_contents(const std::string& path) {
  FileContents contents{"hdf5", Json::object(), {}};
  add_hdf5(fs::read_file(path), path, contents);
  return contents;
}

FileContents keras_contents(const std::string& path) {
  FileContents contents{"zip", Json::object(), {}};
  std::string weights;
  Json files = Json::array();
  for (io::ZipEntry& entry :
       io::read_zip(fs::read_file(path), std::numeric_limits<std::size_t>::max() / 2, path)) {
    files.push_back(cat(entry.name, "  ", entry.content.size(), " bytes"));
    if (entry.name == "metadata.json")
      contents.facts["metadata"] = parse(entry.content, entry.name);
    if (entry.name == "config.json") {
      contents.format = "keras";
      const Json config = parse(entry.content, entry.name);
      if (config.is_object() && config.contains("class_name")) {
        contents.facts["model"] = config["class_name"];
        contents.facts["compile"] = config.value("compile_config", Json());
        Json lines = Json::array();
        add_layers(Json::array({config}), "", lines);
        contents.facts["layers"] = std::move(lines);
      }
    }
    if (entry.name.ends_with(".weights.h5")) weights = std::move(entry.content);
  }
  contents.facts["files"] = std::move(files);
  if (!weights.empty()) add_hdf5(weights, cat(path, ": model.weights.h5"), contents);
  contents.facts.erase("attributes");
  return contents;
}

}  // namespace tandem::cli
