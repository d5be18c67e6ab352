#include "tandem/io/internal/other_formats.h"

#include <algorithm>
#include <cstddef>

#include "tandem/core/error.h"

namespace tandem::io {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kFreeze =
    "Load it in Python and export a frozen graph: docs/graphs.md says how.";

bool holds(std::string_view bytes, std::string_view part) {
  return bytes.find(part) != std::string_view::npos;
}

std::string zip_format(std::string_view bytes, const std::string& path) {
  if (path.ends_with(".keras") || holds(bytes, "model.weights.h5"sv))
    return cat("a model that Keras saved (.keras). ", kFreeze);
  if (holds(bytes, "/data.pkl"sv)) return "a model of PyTorch. Only TensorFlow's graphs are read.";
  return "a zip archive.";
}

bool is_checkpoint_index(std::string_view bytes) {
  return bytes.ends_with("\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv);
}

// "model.data-00000-of-00001"
bool is_checkpoint_data(const std::string& path) {
  const std::size_t at = path.rfind(".data-");
  return at != std::string::npos && path.find("-of-", at) != std::string::npos &&
         path.find('/', at) == std::string::npos;
}

// The first field of both is a message: of a GraphDef a node, whose name comes first, of a
// MetaGraphDef what is known of it, mostly its ops.
bool is_meta_graph(std::string_view bytes, const std::string& path) {
  if (path.ends_with(".meta") || bytes.starts_with("meta_info_def"sv)) return true;
  if (!bytes.starts_with('\x0a')) return false;
  const std::size_t last = std::min<std::size_t>(bytes.size(), 11);  // of its length
  std::size_t at = 1;
  while (at < last && (static_cast<unsigned char>(bytes[at]) & 0x80) != 0) ++at;
  return at + 1 < bytes.size() && bytes[at + 1] == '\x12';
}

// ir_version (1, a number), then who made it or the graph: field 1 of TensorFlow's is a message.
bool is_onnx(std::string_view bytes, const std::string& path) {
  if (path.ends_with(".onnx")) return true;
  return bytes.size() > 2 && bytes[0] == '\x08' && bytes[1] > 0 &&
         (bytes[2] == '\x12' || bytes[2] == '\x1a' || bytes[2] == '\x3a');
}

}  // namespace

std::string other_format(std::string_view bytes, const std::string& path) {
  constexpr std::size_t kFlatBufferName = 4;
  if (bytes.starts_with("PK\x03\x04"sv)) return zip_format(bytes, path);
  if (bytes.starts_with("\x89HDF\r\n\x1a\n"sv)) {
    return cat("an HDF5 file, as Keras writes for models and weights (.h5). ", kFreeze,
               " Weights alone: tf.train.Checkpoint writes what load_weights reads "
               "(docs/saving.md).");
  }
  if (bytes.size() > kFlatBufferName && bytes.substr(kFlatBufferName).starts_with("TFL3"sv)) {
    return "a model of TensorFlow Lite, which is not read. Export a frozen graph of the model that "
           "it was made from: docs/graphs.md says how.";
  }
  if (bytes.starts_with("\x93NUMPY"sv)) return "an array of NumPy (.npy). It may be fed.";
  if (is_checkpoint_index(bytes) || is_checkpoint_data(path)) {
    return "a file of a checkpoint: values of variables, no graph. load_weights reads a model's "
           "(docs/saving.md).";
  }
  if (bytes.starts_with("saved_model_schema_version"sv) || bytes.starts_with("meta_graphs"sv))
    return cat("a SavedModel in text form. ", kFreeze);
  if (is_onnx(bytes, path)) return "a model of ONNX. Only TensorFlow's graphs are read.";
  if (is_meta_graph(bytes, path)) {
    return "a MetaGraphDef (.meta), which holds a graph. Write that alone: "
           "tf.compat.v1.train.import_meta_graph(FILE), then tf.io.write_graph of the default "
           "graph (docs/graphs.md).";
  }
  return "";
}

}  // namespace tandem::io
