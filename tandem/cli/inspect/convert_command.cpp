#include <map>
#include <string>
#include <string_view>

#include "tandem/cli/commands.h"
#include "tandem/cli/inspect/contents.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/hdf5.h"
#include "tandem/io/npy.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::cli {
namespace {

using Arrays = std::map<std::string, Array>;

std::map<std::string, Tensor> tensors_of(const Arrays& arrays) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, array] : arrays) tensors.emplace(name, Tensor(array));
  return tensors;
}

void write_safetensors(const std::string& path, const Arrays& arrays) {
  io::save_safetensors(path, tensors_of(arrays));
}
void write_npz(const std::string& path, const Arrays& arrays) {
  io::save_npz(path, tensors_of(arrays));
}
void write_npy(const std::string& path, const Arrays& arrays) {
  if (arrays.size() != 1) {
    throw InvalidArgumentError(cat("A .npy file is one array, but there are ", arrays.size(),
                                   ": write them to a .npz file."));
  }
  io::write_npy(path, arrays.begin()->second);
}
void write_hdf5(const std::string& path, const Arrays& arrays) {
  fs::write_file(path, io::encode_hdf5({arrays, {}}));
}
void write_checkpoint(const std::string& prefix, const Arrays& arrays) {
  io::TensorBundleWriter writer(prefix);
  for (const auto& [name, array] : arrays) writer.add(name, array);
  writer.finish();
}

struct Writer {
  std::string_view ending;
  void (*write)(const std::string& path, const Arrays& arrays);
};
// The first whose ending fits.
constexpr Writer kWriters[] = {{".safetensors", write_safetensors},
                               {".npz", write_npz},
                               {".npy", write_npy},
                               {".h5", write_hdf5},
                               {".hdf5", write_hdf5},
                               {"", write_checkpoint}};

bool is_graph(const std::string& path) { return path.ends_with(".pb") || path.ends_with(".pbtxt"); }

}  // namespace

void run_convert(const ConvertArguments& arguments) {
  if (is_graph(arguments.to)) {
    io::ImportOptions options;
    options.allow_unsupported = true;
    io::write_graph_def(arguments.to, io::read_graph_def(arguments.from, options));
    return;
  }
  if (arguments.to.ends_with(".keras")) {
    throw InvalidArgumentError(
        "A .keras file holds a model's architecture too: td::keras writes it (model.save).");
  }
  const FileContents contents = open_contents(arguments.from);
  Arrays arrays;
  for (const FileTensor& tensor : contents.tensors) {
    // What a checkpoint says of TensorFlow's objects is of no use elsewhere.
    if (tensor.name == "_CHECKPOINTABLE_OBJECT_GRAPH") continue;
    if (!tensor.read) {
      throw UnimplementedError(cat(arguments.from, ": tensor '", tensor.name,
                                   "' has elements of type ", tensor.dtype,
                                   ", which Tandem has no dtype for."));
    }
    arrays[tensor.name] = tensor.read();
  }
  if (arrays.empty())
    throw InvalidArgumentError(cat(arguments.from, " (", contents.format, ") holds no tensors."));
  for (const Writer& writer : kWriters) {
    if (arguments.to.ends_with(writer.ending)) return writer.write(arguments.to, arrays);
  }
}

}  // namespace tandem::cli
