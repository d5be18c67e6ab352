#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/core/array.h"

namespace tandem::cli {

/// A tensor in a file; read only when it is asked for.
struct FileTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::function<Array()> read;  ///< empty: Tandem has no such elements
};

/// What a file holds, whatever its format.
struct FileContents {
  std::string format;  ///< "safetensors", "checkpoint", "SavedModel", …
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();  ///< what is no tensor
  std::vector<FileTensor> tensors;
  std::string text = {};  ///< shown instead of the facts, where another tool has a form of its own
};

/// Opens a file or folder by what it is; its name helps where the bytes alone do not say. Throws
/// InvalidArgumentError if the format is not known, else what the reader of the format throws.
FileContents open_contents(const std::string& path);

// By format; all but open_contents expect that the format is this one.
FileContents npy_contents(const std::string& path);
FileContents npz_contents(const std::string& path);
FileContents safetensors_contents(const std::string& path);
FileContents checkpoint_contents(const std::string& prefix);
FileContents hdf5_contents(const std::string& path);
FileContents keras_contents(const std::string& path);
FileContents graph_contents(const std::string& path);
FileContents saved_model_contents(const std::string& folder);
/// A file of TFRecords, which may be TensorBoard's events.
FileContents record_contents(const std::string& path);

/// A FileTensor of an array that is in memory.
FileTensor tensor_of(const std::string& name, const Array& array);

}  // namespace tandem::cli
